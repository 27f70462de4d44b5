// Programs marked with culprit_annotate.h, recorded while they run and from their start.
#include "record/annotate/annotate.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>

#include <array>
#include <fstream>
#include <thread>

#include "record/annotate/marked_file.h"
#include "record/nvtx/recorded.h"

namespace culprit::record::annotate {
namespace {

using test::Recording;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string built(const std::string& name) { return std::string(CULPRIT_BINARY_DIR) + "/" + name; }

/// marked.c with pipes for what it reads and says.
class MarkedProgram {
 public:
  explicit MarkedProgram(const char* steps, const char* nanoseconds = "2000000") {
    int in[2];
    int out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      execl(built("annotate_c99_program").c_str(), "annotate_c99_program", steps, nanoseconds, nullptr);
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    to_ = in[1];
    from_ = out[0];
  }
  ~MarkedProgram() {
    if (status_ == -1) {
      kill(pid_, SIGKILL);
      end();
    }
    close(from_);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// "ready" or "done".
  [[nodiscard]] std::string hear() const {
    char text[64] = {};
    return read(from_, text, sizeof text - 1) > 0 ? text : "";
  }
  void go() const { EXPECT_EQ(write(to_, "x", 1), 1); }
  int end() {
    close(to_);
    waitpid(pid_, &status_, 0);
    return status_;
  }

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
  int status_ = -1;
};

class Annotate : public ::testing::Test {
 protected:
  /// False, with the test marked as skipped, where probes cannot be attached.
  bool start() {
    const Status started = recorded_.start();
    if (!started) skip_reason_ = to_string(started.error());
    return started.ok();
  }
  std::string skip_reason_;
  test::Recorded recorded_{make_annotate()};
};

#define START_OR_SKIP() \
  if (!start()) GTEST_SKIP() << "PROBES CANNOT BE ATTACHED HERE, NOTHING IS TESTED: " << skip_reason_

TEST_F(Annotate, RecordsARunningProgram) {
  MarkedProgram program("3");
  ASSERT_EQ(program.hear(), "ready\n");
  recorded_.add(program.pid());
  START_OR_SKIP();
  program.go();
  ASSERT_EQ(program.hear(), "done\n");
  recorded_.poll();
  EXPECT_EQ(recorded_.session().steps, 4U);
  const Recording recording = recorded_.finish();
  const auto outer = recording.named("step[DECODE bs=2 toks=2]");
  ASSERT_THAT(outer, SizeIs(1));
  EXPECT_EQ(outer[0].tid, program.pid());
  EXPECT_EQ(outer[0].category, "annotate");
  const auto inner = recording.named("inner");
  ASSERT_THAT(inner, SizeIs(3));
  EXPECT_EQ(inner[1].depth, 1U);
  EXPECT_GE(inner[1].begin, outer[0].begin);
  EXPECT_LE(inner[1].end, outer[0].end);
  EXPECT_GE(inner[1].end - inner[1].begin, 2'000'000U);
  EXPECT_THAT(recording.named("half"), SizeIs(3));
  EXPECT_THAT(recording.named("step: train"), SizeIs(1)) << "declared a step, so that it is found as one";
  EXPECT_EQ(recording.ends_without_begin, 0U);
  EXPECT_TRUE(recorded_.collector().sights().at(0).available) << "after the end too";
}

TEST_F(Annotate, RecordsAStartedProgram) {
  START_OR_SKIP();
  MarkedProgram program("2");
  recorded_.add(program.pid());
  ASSERT_EQ(program.hear(), "ready\n");
  recorded_.poll();  // its executable is found once it is there
  program.go();
  ASSERT_EQ(program.hear(), "done\n");
  recorded_.poll();
  EXPECT_EQ(recorded_.session().steps, 3U);
}

TEST_F(Annotate, OtherProcessesOfTheProgramStayOut) {
  START_OR_SKIP();
  MarkedProgram recorded("2");
  MarkedProgram other("5");
  ASSERT_EQ(recorded.hear(), "ready\n");
  ASSERT_EQ(other.hear(), "ready\n");
  recorded_.add(recorded.pid());
  other.go();
  recorded.go();
  ASSERT_EQ(recorded.hear(), "done\n");
  ASSERT_EQ(other.hear(), "done\n");
  recorded_.poll();
  EXPECT_EQ(recorded_.session().steps, 3U);
  for (const auto& slice : recorded_.finish().slices) EXPECT_EQ(slice.tid, recorded.pid());
}

TEST_F(Annotate, AnEndWithoutBeginIsNoStep) {
  MarkedProgram program("100000");
  ASSERT_EQ(program.hear(), "ready\n");
  program.go();
  START_OR_SKIP();
  std::this_thread::sleep_for(std::chrono::milliseconds(21));
  recorded_.add(program.pid());  // somewhere in the middle
  for (int i = 0; i < 500 && recorded_.session().steps == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    recorded_.poll();
  }
  kill(program.pid(), SIGKILL);
  recorded_.poll();
  EXPECT_GT(recorded_.session().steps, 0U);
  EXPECT_LT(recorded_.session().steps, 100000U);
  EXPECT_EQ(recorded_.finish().ends_without_begin, 0U);
}

TEST_F(Annotate, StepsEndAlthoughOthersAttachAndDetach) {
  // Attaching takes longer beside others that attach to the same file, and steps begin in the middle of it.
  MarkedProgram program("100000");
  ASSERT_EQ(program.hear(), "ready\n");
  program.go();
  START_OR_SKIP();
  std::array<pid_t, 2> attaching{};
  for (pid_t& pid : attaching) {
    pid = fork();
    if (pid != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
      test::Recorded third{make_annotate()};
      if (third.start()) third.add(program.pid());
    }
  }
  for (int i = 0; i < 3; ++i) {
    test::Recorded recorded{make_annotate()};
    EXPECT_TRUE(recorded.start());
    recorded.add(program.pid());
    for (int turn = 0; turn < 300 && recorded.session().steps < 3; ++turn) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      recorded.poll();
    }
    EXPECT_GE(recorded.session().steps, 3U);
  }
  for (const pid_t pid : attaching) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
}

TEST_F(Annotate, ALostEndCostsItsOwnStepAlone) {
  // Nobody reads: the ring fills up in the middle of some step.
  MarkedProgram program("10000000", "1");
  ASSERT_EQ(program.hear(), "ready\n");
  recorded_.add(program.pid());
  START_OR_SKIP();
  program.go();
  const auto wait_until = [&](auto&& is_so) {
    for (int i = 0; i < 2000 && !is_so(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  };
  for (int round = 0; round < 8; ++round) {
    const std::uint64_t dropped = recorded_.collector().stats().dropped;
    wait_until([&] { return recorded_.collector().stats().dropped > dropped + 20; });
    ASSERT_GT(recorded_.collector().stats().dropped, dropped) << "else nothing is tested";
    recorded_.poll();
    const std::uint64_t before = recorded_.session().steps;
    wait_until([&] {
      recorded_.poll();
      return recorded_.session().steps > before + 20;
    });
    ASSERT_GT(recorded_.session().steps, before + 20);
  }
}

TEST_F(Annotate, TheProgramGoesOnAfterTheRecording) {
  MarkedProgram program("20");
  ASSERT_EQ(program.hear(), "ready\n");
  recorded_.add(program.pid());
  START_OR_SKIP();
  program.go();
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  recorded_.finish();
  EXPECT_EQ(program.hear(), "done\n");
  EXPECT_EQ(program.end(), 0);
}

TEST(AnnotatePrivileges, WithoutThemItSaysWhatIsMissing) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give privileges up";
  const pid_t child = fork();
  if (child == 0) {
    int code = 0;
    if (setgid(65534) != 0 || setuid(65534) != 0) code = 1;
    const std::unique_ptr<Collector> collector = make_annotate();
    Result<perfetto::Writer> writer =
        perfetto::Writer::create("/tmp/culprit-annotate-privileges-" + std::to_string(getpid()));
    if (!writer) _exit(2);
    unlink(("/tmp/culprit-annotate-privileges-" + std::to_string(getpid())).c_str());
    const std::vector<Target> targets;
    Session session{.writer = *writer, .targets = targets};
    const Status started = collector->start(session);
    const std::vector<Sight> sights = collector->sights();
    if (started.ok() || sights.size() != 1 || sights[0].available || sights[0].why.empty() || sights[0].remedy.empty())
      code = 3;
    collector->poll(session, 0);
    collector->stop(session, 0);
    _exit(code);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(MarkedFile, FindsTheMarksOfBothLanguages) {
  EXPECT_THAT(marks_in(built("annotate_c99_program")), ElementsAre("mark", "step_begin", "step_end"));
  EXPECT_THAT(marks_in(built("annotate_cpp_program")), ElementsAre("mark", "step_begin", "step_end"));
}

TEST(MarkedFile, OthersHaveNone) {
  EXPECT_THAT(marks_in("/bin/true"), IsEmpty());
  EXPECT_THAT(marks_in("/no/such/file"), IsEmpty());
  EXPECT_THAT(marks_in("/dev/null"), IsEmpty());
  test::TempDir folder;
  EXPECT_THAT(marks_in(folder.file("text", "hello")), IsEmpty());
}

TEST(MarkedFile, DamagedFilesDoNoHarm) {
  std::ifstream in(built("annotate_c99_program"), std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  ASSERT_GT(good.size(), 1000U);
  test::TempDir folder;
  for (std::size_t size = 0; size < good.size(); size += good.size() / 37)
    marks_in(folder.file("cut", good.substr(0, size)));
  unsigned seed = 5;
  for (int i = 0; i < 300; ++i) {
    std::string bad = good;
    for (int k = 0; k < 20; ++k) {
      seed = seed * 1664525 + 1013904223;
      bad[(seed >> 8) % (i % 2 == 0 ? 64 : bad.size())] = static_cast<char>(seed >> 24);
    }
    for (const std::string& name : marks_in(folder.file("bad", bad))) EXPECT_LT(name.size(), good.size());
  }
}

TEST(Header, StaysShort) {
  std::ifstream in(CULPRIT_SOURCE_DIR "/include/culprit_annotate.h");
  int lines = 0;
  for (std::string line; std::getline(in, line);) ++lines;
  EXPECT_GT(lines, 10);
  EXPECT_LE(lines, 60);
}

}  // namespace
}  // namespace culprit::record::annotate
