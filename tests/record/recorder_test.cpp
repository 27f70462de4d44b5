// The recorder with collectors of our own: when it ends, whom it tells, what it writes down.
#include "record/recorder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <set>
#include <thread>

#include "support/child_process.h"
#include "support/temp_file.h"

namespace culprit::record {
namespace {

/// What happened to a FakeCollector; outlives it.
struct Log {
  int starts = 0;
  int polls = 0;
  int stops = 0;
  std::vector<Ns> begins;               // of the session, at each poll
  std::vector<const Log*>* order = {};  // in which they start
  std::set<std::int64_t> joined;
  std::set<std::int64_t> left;
};

struct FakeCollector final : Collector {
  explicit FakeCollector(Log& given) : log(given) {}
  Log& log;
  bool first = false;
  bool can_start = true;
  std::uint64_t steps_per_poll = 0;
  int bytes_per_poll = 0;
  std::vector<std::string> variables;

  [[nodiscard]] std::string_view name() const override { return "fake"; }
  Status start(Session& session) override {
    ++log.starts;
    if (log.order != nullptr) log.order->push_back(&log);
    for (const Target& target : session.targets) log.joined.insert(target.pid);
    if (!can_start) return environment_error("no privilege", "fake", "get it");
    return {};
  }
  [[nodiscard]] bool starts_first() const override { return first; }
  [[nodiscard]] std::vector<Sight> sights() const override { return {{"fakes", can_start, "no privilege", "get it"}}; }
  [[nodiscard]] std::vector<std::string> environment() const override { return variables; }
  void target_joined(const Target& target) override { log.joined.insert(target.pid); }
  void target_left(const Target& target) override { log.left.insert(target.pid); }
  void poll(Session& session, Ns now) override {
    ++log.polls;
    log.begins.push_back(session.begin);
    session.steps += steps_per_poll;
    const auto track = session.writer.named_track("fake");
    // Names that deflate cannot shrink.
    for (int i = 0; i < bytes_per_poll / 16; ++i)
      session.writer.instant(track, now, std::to_string(std::hash<Ns>{}(now * 7919 + Ns{i} * 104729) * 2654435761U),
                             "x");
  }
  void stop(Session& /*session*/, Ns /*now*/) override { ++log.stops; }
  [[nodiscard]] CollectorStats stats() const override { return {static_cast<std::uint64_t>(log.polls), 2, 0}; }
};

struct Fixture : ::testing::Test {
  test::TempDir dir;
  Log log;
  FakeCollector* fake = nullptr;

  CollectorSet set() {
    CollectorSet collectors;
    auto collector = std::make_unique<FakeCollector>(log);
    fake = collector.get();
    collectors.collectors.push_back(std::move(collector));
    return collectors;
  }
  RecordOptions options() const {
    RecordOptions options;
    options.output = dir.path("run.pftrace");
    options.version = "test";
    return options;
  }
};

TEST_F(Fixture, EndsWithItsCommandAndPassesItsStatusOn) {
  RecordOptions with = options();
  with.command = {"sh", "-c", "exit 9"};
  Recorder recorder(with, set());
  ASSERT_TRUE(recorder.start());
  const RecordSummary summary = recorder.run(-1);
  EXPECT_EQ(summary.ending, Ending::target_ended);
  ASSERT_TRUE(summary.command_status);
  EXPECT_EQ(WEXITSTATUS(*summary.command_status), 9);
  EXPECT_FALSE(summary.error);
  EXPECT_EQ(log.starts, 1);
  EXPECT_EQ(log.stops, 1);
  EXPECT_EQ(summary.total.dropped, 2u);
  struct stat file {};
  ASSERT_EQ(stat(with.output.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
}

TEST_F(Fixture, EndsAfterItsDurationAndAsksTheCommandToEnd) {
  RecordOptions with = options();
  with.command = {"sleep", "100"};
  with.duration = 200'000'000;
  Recorder recorder(with, set());
  ASSERT_TRUE(recorder.start());
  const Ns before = monotonic_now();
  const RecordSummary summary = recorder.run(-1);
  EXPECT_EQ(summary.ending, Ending::duration);
  EXPECT_FALSE(summary.command_status);
  EXPECT_LT(monotonic_now() - before, 3'000'000'000);
  EXPECT_GE(summary.total.elapsed, 200'000'000);
}

TEST_F(Fixture, WhoHoldsUpTheTargetsStartsFirstAndIsAskedMeanwhile) {
  Log other;
  std::vector<const Log*> order;
  log.order = other.order = &order;
  CollectorSet collectors;
  collectors.collectors.push_back(std::make_unique<FakeCollector>(other));
  auto late = std::make_unique<FakeCollector>(log);
  late->first = true;
  collectors.collectors.push_back(std::move(late));
  RecordOptions wanted = options();
  wanted.command = {"sleep", "10"};
  wanted.duration = 100'000'000;
  Recorder recorder(wanted, std::move(collectors));
  const Ns before = monotonic_now();
  ASSERT_TRUE(recorder.start().ok());
  EXPECT_EQ(order, (std::vector<const Log*>{&log, &other}));
  EXPECT_EQ(log.begins, (std::vector<Ns>{kNotBegun, kNotBegun})) << "after each of the two";
  EXPECT_TRUE(other.begins.empty());
  static_cast<void>(recorder.run(-1, {}));
  ASSERT_FALSE(other.begins.empty());
  EXPECT_GE(other.begins.front(), before);
  EXPECT_LE(other.begins.front(), monotonic_now());
}

TEST_F(Fixture, EndsAfterItsSteps) {
  RecordOptions with = options();
  with.command = {"sleep", "100"};
  with.steps = 6;
  auto collectors = set();
  fake->steps_per_poll = 2;
  Recorder recorder(with, std::move(collectors));
  ASSERT_TRUE(recorder.start());
  const RecordSummary summary = recorder.run(-1);
  EXPECT_EQ(summary.ending, Ending::steps);
  EXPECT_EQ(summary.total.steps, 6u);
}

TEST_F(Fixture, EndsWhenAsked) {
  RecordOptions with = options();
  with.pids = {getppid() > 1 ? getppid() : getpid()};
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  with.pids = {child};
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Recorder recorder(with, set());
  ASSERT_TRUE(recorder.start());
  EXPECT_TRUE(recorder.poll(ends[0]));
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  const RecordSummary summary = recorder.run(ends[0]);
  EXPECT_EQ(summary.ending, Ending::interrupted);
  EXPECT_EQ(kill(child, 0), 0) << "the target runs on";
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(Fixture, EndsWhenItsTargetIsKilled) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  RecordOptions with = options();
  with.pids = {child};
  Recorder recorder(with, set());
  ASSERT_TRUE(recorder.start());
  EXPECT_TRUE(recorder.poll());
  kill(child, SIGKILL);
  const RecordSummary summary = recorder.run(-1);
  EXPECT_EQ(summary.ending, Ending::target_ended);
  EXPECT_EQ(log.left, std::set<std::int64_t>{child});
  waitpid(child, nullptr, 0);
}

TEST_F(Fixture, ChildrenJoin) {
  RecordOptions with = options();
  with.command = {"sh", "-c", "sleep 100 & sleep 100 & wait"};
  Recorder recorder(with, set());
  ASSERT_TRUE(recorder.start());
  const auto polled_until = [&](const std::function<bool()>& seen) {
    return test::eventually([&] { return !recorder.poll() || seen(); }) && seen();
  };
  ASSERT_TRUE(polled_until([&] { return log.joined.size() >= 3; }));
  const std::int64_t child = *log.joined.rbegin();
  kill(static_cast<pid_t>(child), SIGKILL);
  EXPECT_TRUE(polled_until([&] { return log.left.contains(child); }));
  for (const std::int64_t joined : log.joined) kill(static_cast<pid_t>(joined), SIGKILL);
  static_cast<void>(recorder.run(-1));
}

TEST_F(Fixture, NothingToCollectIsAMissingRight) {
  RecordOptions with = options();
  with.command = {"sleep", "100"};
  auto collectors = set();
  fake->can_start = false;
  Recorder recorder(with, std::move(collectors));
  const Status status = recorder.start();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::environment);
  EXPECT_NE(status.error().what.find("no privilege"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(with.output)) << "no file without a recording";
}

TEST_F(Fixture, NoSuchProcessMakesNoFile) {
  RecordOptions with = options();
  with.pids = {0x3ffff0};
  Recorder recorder(with, set());
  const Status status = recorder.start();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::input);
  EXPECT_FALSE(std::filesystem::exists(with.output));
}

TEST_F(Fixture, AnExistingFileIsKept) {
  RecordOptions with = options();
  with.command = {"true"};
  static_cast<void>(dir.file("run.pftrace", "precious"));
  Recorder recorder(with, set());
  EXPECT_FALSE(recorder.start());
  EXPECT_EQ(std::filesystem::file_size(with.output), 8u);
}

TEST_F(Fixture, ACommandThatCannotStartLeavesNoFile) {
  RecordOptions with = options();
  with.command = {"/nonexistent"};
  Recorder recorder(with, set());
  EXPECT_FALSE(recorder.start());
  EXPECT_FALSE(std::filesystem::exists(with.output));
}

TEST_F(Fixture, AFullDiskEndsTheRecordingNotTheTarget) {
  RecordOptions with = options();
  with.command = {"sleep", "100"};
  auto collectors = set();
  fake->bytes_per_poll = 4 << 20;
  Recorder recorder(with, std::move(collectors));
  ASSERT_TRUE(recorder.start());
  // Writing beyond the limit fails like on a full disk, once the signal is ignored.
  static_cast<void>(std::signal(SIGXFSZ, SIG_IGN));
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{1 << 20, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const RecordSummary summary = recorder.run(-1);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(summary.ending, Ending::failed);
  ASSERT_TRUE(summary.error);
  EXPECT_FALSE(summary.command_status) << "the command runs on";
  EXPECT_GT(std::filesystem::file_size(with.output), 100'000u);
  ASSERT_EQ(log.joined.size(), 1u);
  const auto command = static_cast<pid_t>(*log.joined.begin());
  EXPECT_EQ(kill(command, 0), 0);
  kill(command, SIGKILL);
  waitpid(command, nullptr, 0);
}

TEST_F(Fixture, VariablesOfCollectorsReachTheCommand) {
  RecordOptions with = options();
  with.command = {"sh", "-c", "test \"$CULPRIT_FAKE\" = yes"};
  auto collectors = set();
  fake->variables = {"CULPRIT_FAKE=yes"};
  Recorder recorder(with, std::move(collectors));
  ASSERT_TRUE(recorder.start());
  const RecordSummary summary = recorder.run(-1);
  ASSERT_TRUE(summary.command_status);
  EXPECT_EQ(*summary.command_status, 0);
}

TEST_F(Fixture, FinishingTwiceChangesNothing) {
  RecordOptions with = options();
  with.command = {"true"};
  Recorder recorder(with, set());
  ASSERT_TRUE(recorder.start());
  static_cast<void>(recorder.run(-1));
  const auto size = std::filesystem::file_size(with.output);
  static_cast<void>(recorder.finish());
  EXPECT_EQ(std::filesystem::file_size(with.output), size);
  EXPECT_EQ(log.stops, 1);
}

TEST(Collectors, AreChosenByName) {
  EXPECT_TRUE(make_collectors(Preset::deep, {}, {}));
  const auto one = make_collectors(Preset::watch, {"sched"}, {});
  ASSERT_TRUE(one);
  ASSERT_EQ(one->collectors.size(), 1u);
  EXPECT_EQ(one->collectors.front()->name(), "sched");
  const auto less = make_collectors(Preset::watch, {}, {"sched"});
  ASSERT_TRUE(less);
  for (const auto& collector : less->collectors) EXPECT_NE(collector->name(), "sched");
}

TEST(Collectors, UnknownNamesAreErrors) {
  const auto wrong = make_collectors(Preset::deep, {"scheds"}, {});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::usage);
  EXPECT_NE(wrong.error().remedy.find("sched"), std::string::npos);
  EXPECT_FALSE(make_collectors(Preset::deep, {}, {"x"}));
  EXPECT_FALSE(make_collectors(Preset::deep, {"sched"}, {"sched"}));
}

}  // namespace
}  // namespace culprit::record
