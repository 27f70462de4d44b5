#include "faults/state_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "faults/process.h"
#include "support/child_process.h"

namespace culprit::faults {
namespace {

Leftover example() {
  return {"",
          boot_id(),
          {812, 7},
          {813, 8},
          {{Undo::Kind::remove_file, {"/a\n12\nb"}}, {Undo::Kind::command, {"/bin/true", ""}}}};
}

TEST(StateFile, SurvivesWritingAndReading) {
  const auto back = parse_state(format_state(example()));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->boot, boot_id());
  EXPECT_EQ(back->injector, (ProcessId{812, 7}));
  EXPECT_EQ(back->guard, (ProcessId{813, 8}));
  EXPECT_EQ(back->steps, example().steps);
}

TEST(StateFile, ACutOrChangedTextNeverGivesOtherSteps) {
  const std::string text = format_state(example());
  for (std::size_t size = 0; size < text.size(); ++size) {
    const auto state = parse_state(std::string_view(text).substr(0, size));
    EXPECT_TRUE(!state || state->steps.size() < 2U) << size;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = '\xff';
    static_cast<void>(parse_state(changed));  // must not crash; a changed path cannot be told from a right one
  }
  EXPECT_FALSE(parse_state("culprit undo 2\nx\n1 1\n1 1\n"));
  EXPECT_FALSE(parse_state("culprit undo 1\nx\n1 1\n1 1\n-5\nabc\n"));
  EXPECT_FALSE(parse_state("culprit undo 1\nx\n1 1\n1 1\n99999999999\nabc\n"));
}

TEST(StateFile, IsInUseWhileTheInjectorLives) {
  Leftover state = example();
  EXPECT_FALSE(state.in_use());
  state.injector = process_facts(getpid())->id;
  EXPECT_TRUE(state.in_use());
  state.injector.start += 1;  // the number was used again
  EXPECT_FALSE(state.in_use());
}

TEST(StateFile, LeftoversAreUndoneAndGo) {
  const test::Folder folder;
  Leftover state = example();
  const std::string file = folder.write("victim", "x");
  state.steps = {{Undo::Kind::remove_file, {file}}};
  state.file = folder.path + "/one.undo";
  ASSERT_TRUE(write_state(state.file, state));
  folder.write("damaged.undo", "no state");
  const auto found = leftovers(folder.path);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(undo_leftover(found[0]).empty());
  EXPECT_NE(access(file.c_str(), F_OK), 0);
  EXPECT_NE(access(state.file.c_str(), F_OK), 0);
}

TEST(StateFile, AfterARestartOnlyFilesAreRemoved) {
  const test::Folder folder;
  const std::string setting = folder.write("setting", "now!");
  Leftover state = example();
  state.boot = "another boot";
  state.file = folder.write("x.undo", "");
  state.steps = {{Undo::Kind::write_file, {setting, "then"}}, {Undo::Kind::remove_file, {folder.write("f", "")}}};
  EXPECT_TRUE(undo_leftover(state).empty());
  EXPECT_NE(access((folder.path + "/f").c_str(), F_OK), 0);
  std::ifstream in(setting);
  std::string text;
  in >> text;
  EXPECT_EQ(text, "now!");
}

}  // namespace
}  // namespace culprit::faults
