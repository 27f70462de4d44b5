#include "faults/undo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "core/file.h"
#include "faults/process.h"
#include "support/child_process.h"

namespace culprit::faults {
namespace {

using Kind = Undo::Kind;

TEST(Undo, EveryKindSurvivesEncoding) {
  const std::vector<Undo> steps = {{Kind::continue_process, {"812", "99"}},
                                   {Kind::leave_cgroup, {"/a b/own", "/a b"}},
                                   {Kind::remove_file, {"/x\n/y"}},
                                   {Kind::remove_directory, {""}},
                                   {Kind::write_file, {"/f", "100000 100000"}},
                                   {Kind::command, {"/usr/sbin/tc", "qdisc", "", "show"}},
                                   {Kind::remove_queue, {"tc", "lo", "c0de:"}}};
  for (const Undo& step : steps) {
    EXPECT_EQ(decode(encode(step)), step) << describe(step);
    EXPECT_FALSE(describe(step).empty());
  }
}

TEST(Undo, WhatEncodingCannotHaveMadeIsRefused) {
  using namespace std::string_literals;
  for (const std::string& bytes : {""s, "format_disk\0/dev/sda"s, "remove_file"s, "remove_file\0a\0b"s,
                                   "write_file\0a"s, "remove_files\0a"s, "continue_process\0"s + "812"s})
    EXPECT_FALSE(decode(bytes)) << bytes;
}

TEST(Undo, RemovesAFileOnceAndIsDoneWhenItIsGone) {
  const test::Folder folder;
  const std::string file = folder.write("f", "text");
  EXPECT_EQ(execute({Kind::remove_file, {file}}), std::nullopt);
  EXPECT_NE(access(file.c_str(), F_OK), 0);
  EXPECT_EQ(execute({Kind::remove_file, {file}}), std::nullopt);
}

TEST(Undo, AFolderThatHoldsSomethingStaysAndIsReported) {
  const test::Folder folder;
  const std::string file = folder.write("f", "text");
  EXPECT_THAT(execute({Kind::remove_directory, {folder.path}}), testing::Optional(testing::HasSubstr(folder.path)));
  EXPECT_EQ(access(file.c_str(), F_OK), 0);
}

TEST(Undo, TakesStepsInReverseAndGoesOnAfterAFailure) {
  const test::Folder folder;
  const std::string file = folder.write("value", "");
  const std::string own = folder.path + "/own";
  ASSERT_EQ(mkdir(own.c_str(), 0700), 0);
  const auto failures = execute_all({{Kind::remove_directory, {own}},
                                     {Kind::remove_file, {own + "/f"}},
                                     {Kind::write_file, {file, "first"}},
                                     {Kind::write_file, {folder.path + "/missing", "1"}},
                                     {Kind::write_file, {file, "secnd"}}});
  EXPECT_EQ(failures.size(), 1U);
  EXPECT_EQ(read_beginning(file), "first");
  EXPECT_NE(access(own.c_str(), F_OK), 0);
}

TEST(Undo, ASettingIsDoneWhenItsFolderIsGone) {
  const test::Folder folder;
  EXPECT_EQ(execute({Kind::write_file, {folder.path + "/group/cgroup.freeze", "0"}}), std::nullopt);
  EXPECT_THAT(execute({Kind::write_file, {folder.path + "/cgroup.freeze", "0"}}),
              testing::Optional(testing::HasSubstr("cgroup.freeze")));
}

TEST(Undo, ContinuesAStoppedProcess) {
  const test::Child child;
  ASSERT_EQ(kill(child.pid, SIGSTOP), 0);
  ASSERT_TRUE(test::eventually([&] { return process_facts(child.pid)->state == 'T'; }));
  const auto start = process_facts(child.pid)->id.start;
  EXPECT_EQ(execute({Kind::continue_process, {std::to_string(child.pid), std::to_string(start)}}), std::nullopt);
  EXPECT_TRUE(test::eventually([&] { return process_facts(child.pid)->state != 'T'; }));
}

TEST(Undo, ALaterProcessOfTheSameNumberIsLeftAlone) {
  const test::Child child;
  ASSERT_EQ(kill(child.pid, SIGSTOP), 0);
  ASSERT_TRUE(test::eventually([&] { return process_facts(child.pid)->state == 'T'; }));
  const auto start = process_facts(child.pid)->id.start;
  EXPECT_EQ(execute({Kind::continue_process, {std::to_string(child.pid), std::to_string(start - 1)}}), std::nullopt);
  usleep(50'000);
  EXPECT_EQ(process_facts(child.pid)->state, 'T');
}

TEST(Undo, ACommandThatFailsIsReportedWithItsText) {
  EXPECT_EQ(execute({Kind::command, {"/bin/true"}}), std::nullopt);
  EXPECT_THAT(execute({Kind::command, {"/bin/ls", "/nothing here"}}),
              testing::Optional(testing::HasSubstr("nothing here")));
  EXPECT_NE(execute({Kind::command, {"/nothing/here"}}), std::nullopt);
}

}  // namespace
}  // namespace culprit::faults
