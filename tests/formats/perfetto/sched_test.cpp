// What waits for a CPU, and behind whom.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "formats/perfetto/reader.h"
#include "formats/perfetto/writer.h"
#include "support.h"

namespace culprit::perfetto::test {
namespace {

using culprit::test::TempDir;
using testing::ElementsAre;

/// A recording of the threads 101 and 102 of one process.
class Switches {
 public:
  Switches() {
    writer_->process({.pid = 100, .parent = 1, .name = "prog"});
    writer_->thread(100, 101, "worker");
    writer_->thread(100, 102, "helper");
  }
  /// `state` of the one that leaves: 1 asleep, 256 preempted.
  void add(Ns at, std::uint32_t cpu, int prev, int next, std::int64_t state) {
    writer_->sched_switch({.at = at,
                           .cpu = cpu,
                           .prev_tid = prev,
                           .next_tid = next,
                           .prev_state = state,
                           .prev_name = name(prev),
                           .next_name = name(next)});
  }
  void wake(Ns at, int tid) {
    writer_->sched_waking({.at = at, .cpu = 0, .target_cpu = 0, .waker_tid = 0, .tid = tid, .name = name(tid)});
  }
  Trace read() {
    EXPECT_TRUE(writer_->close());
    return read_file(path_);
  }

 private:
  static const char* name(int tid) { return tid == 0 ? "swapper" : tid == 101 || tid == 102 ? "own" : "rival"; }
  TempDir dir_;
  std::string path_ = dir_.path("switches.pftrace");
  Result<Writer> writer_ = Writer::create(path_);
};

const ThreadSched& worker(const Trace& trace) {
  return *std::ranges::find_if(trace.sched,
                               [&](const ThreadSched& thread) { return trace.tracks[thread.track].tid == 101; });
}

std::vector<std::pair<std::int64_t, Ns>> rivals_of_worker(const Trace& trace) {
  std::vector<std::pair<std::int64_t, Ns>> rivals;
  for (const SchedPeer& rival : worker(trace).ran_instead) rivals.emplace_back(rival.tid, rival.time);
  return rivals;
}

/// 102 is recorded, too; of the others only what they do beside these two.
TEST(PerfettoSched, WhoHadTheCpuMeanwhileIsToldToTheNanosecond) {
  Switches switches;
  const auto sw = [&](auto... values) { switches.add(values...); };
  sw(1000, 0, 0, 101, 0);
  sw(2000, 0, 101, 102, 256);  // preempted: the helper has it for 300
  sw(2300, 0, 102, 55, 1);     // and a bystander for 700, of whose switch to another nothing is told
  sw(3000, 0, 55, 0, 256);
  sw(4000, 0, 0, 66, 0);  // the other left at 4000, after 1000
  sw(4000, 0, 66, 101, 1);
  sw(5000, 0, 101, 0, 1);
  switches.wake(9000, 101);
  sw(9500, 0, 0, 101, 0);  // nobody had it
  sw(9600, 0, 101, 0, 1);
  const Trace trace = switches.read();
  EXPECT_EQ(sched_time(trace, 101, "runq"), 2000 + 500);
  EXPECT_THAT(rivals_of_worker(trace), ElementsAre(std::pair(66, 1000), std::pair(55, 700), std::pair(102, 300)));
  EXPECT_EQ(worker(trace).behind_others, 1700);
}

TEST(PerfettoSched, WhoIsPreemptedAndTakenToAnotherCpuWaitedForTheFirst) {
  Switches switches;
  switches.add(1000, 1, 0, 77, 0);
  switches.add(1000, 0, 0, 101, 0);
  switches.add(2000, 0, 101, 55, 256);
  switches.add(2600, 1, 77, 101, 1);
  switches.add(3000, 1, 101, 0, 1);
  switches.wake(5000, 101);
  switches.add(5100, 1, 77, 101, 1);  // woken there: whoever leaves when it comes had it
  switches.add(5200, 1, 101, 0, 1);
  const Trace trace = switches.read();
  EXPECT_THAT(rivals_of_worker(trace), ElementsAre(std::pair(55, 600), std::pair(77, 100)));
  EXPECT_EQ(worker(trace).behind_others, 700);
}

TEST(PerfettoSched, OfALongWaitTheLastStaysAreTold) {
  constexpr int kStays = 1000;
  Switches switches;
  switches.add(1000, 0, 0, 101, 0);
  switches.add(2000, 0, 101, 55, 256);
  for (int i = 1; i < kStays; ++i) switches.add(2000 + i * 10, 0, i % 2 == 1 ? 55 : 56, i % 2 == 1 ? 56 : 55, 256);
  switches.add(2000 + kStays * 10, 0, 56, 101, 256);
  switches.add(20000, 0, 101, 0, 1);
  const Trace trace = switches.read();
  EXPECT_EQ(sched_time(trace, 101, "runq"), kStays * 10);
  Ns told = 0;
  for (const auto& [tid, time] : rivals_of_worker(trace)) told += time;
  EXPECT_GT(told, 2000);
  EXPECT_LT(told, kStays * 10) << "no more than is remembered of a CPU";
}

std::vector<std::tuple<Ns, std::int64_t, std::uint64_t, Ns>> rivals_by_time(const Trace& trace) {
  std::vector<std::tuple<Ns, std::int64_t, std::uint64_t, Ns>> rows;
  for (const RivalTotal& rival : trace.rivals) {
    EXPECT_EQ(trace.tracks[rival.track].tid, 101);
    rows.emplace_back(rival.at, rival.tid, rival.count, rival.time);
  }
  return rows;
}

TEST(PerfettoSched, WhoRanInsteadIsToldByStretchesOfTime) {
  Switches switches;
  const Ns second = kRivalStretch;
  for (const Ns begin : {Ns{0}, Ns{10'000}, 2 * second}) {
    switches.add(begin + 1000, 0, 0, 101, 0);
    switches.add(begin + 2000, 0, 101, 55, 256);
    switches.add(begin + 2600, 0, 55, 101, 256);
    switches.add(begin + 3000, 0, 101, 0, 1);
    switches.wake(begin + 3500, 101);
  }
  const Trace trace = switches.read();
  EXPECT_THAT(rivals_by_time(trace), ElementsAre(std::tuple(Ns{0}, 55, 2U, 1200), std::tuple(2 * second, 55, 1U, 600)));
  EXPECT_EQ(trace.strings[trace.rivals.front().name], "rival");
  EXPECT_THAT(rivals_of_worker(trace), ElementsAre(std::pair(55, 1800)));
}

}  // namespace
}  // namespace culprit::perfetto::test
