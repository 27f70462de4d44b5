#include "report/host_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/render.h"

namespace culprit::report {
namespace {

using testing::HasSubstr;
using testing::Not;

model::HostChanges changes() {
  model::HostChanges c;
  c.states = {{"period", "ns per step", {1e6, 2e6}}, {"stopped", "ns per step", {0.0, 5e5}}};
  c.counters = {{"cgroup.cpu.throttled_time", "ns/s", {0.0, 441e6}},
                {"host.cpu.user", "fraction", {0.25, 0.5}},
                {"host.cpu1.user", "fraction", {0.25, 0.5}},
                {"host.swap.in", "bytes/s", {std::nullopt, 4096.0}}};
  c.counters_alike = 7;
  return c;
}

TEST(HostReport, PeopleGetReadableUnits) {
  const auto tables = host_tables(changes(), true);
  ASSERT_EQ(tables.size(), 2U);
  const std::string text = render_terminal(tables, {});
  EXPECT_THAT(text, HasSubstr("What the threads did per step"));
  EXPECT_THAT(text, HasSubstr("500.000us"));
  EXPECT_THAT(text, HasSubstr("441.0 ms/s"));
  EXPECT_THAT(text, HasSubstr("50.0 %"));
  EXPECT_THAT(text, HasSubstr("4.00 KiB/s"));
  EXPECT_THAT(text, HasSubstr("7 more differ by less than 10 %"));
  EXPECT_THAT(text, Not(HasSubstr("host.cpu1.user")));
  EXPECT_THAT(text, HasSubstr("1 of single CPUs"));
}

TEST(HostReport, MemoryThatWasSlowerIsToldWhereStepsTookLonger) {
  model::HostChanges c = changes();
  EXPECT_EQ(memory_text(c), "");
  c.memory = {1.51, 0.9, 2.31};
  EXPECT_EQ(memory_text(c),
            "The machine's memory was slower: fixed work of the recorder through it took x2.51 (95 % interval x1.90 to "
            "x3.31)");
  c.memory = {-0.6, -0.7, -0.5};
  EXPECT_EQ(memory_text(c), "");
  std::swap(c.states[0].value[0], c.states[0].value[1]);
  EXPECT_THAT(memory_text(c), HasSubstr("faster"));
}

TEST(HostReport, ProgramsGetNumbersInSiUnitsAndEmptyCells) {
  const auto tables = host_tables(changes(), false);
  ASSERT_EQ(tables.size(), 2U);
  ASSERT_EQ(tables[1].rows.size(), 4U);
  EXPECT_EQ(tables[1].rows[0][2], model::Cell{441e6});
  EXPECT_EQ(tables[1].rows[3][1], model::Cell{});
  EXPECT_EQ(tables[1].rows[3][3], model::Cell{std::string("bytes/s")});
}

TEST(HostReport, ARatioNeedsABaseline) {
  const auto tables = host_tables(changes(), false);
  EXPECT_EQ(tables[0].rows[1].back(), model::Cell{});
  EXPECT_EQ(tables[0].rows[0].back(), model::Cell{2.0});
}

TEST(HostReport, WithoutStepsItSpeaksOfSeconds) {
  auto c = changes();
  c.per_second = true;
  EXPECT_EQ(host_tables(c, true).front().title, "What the threads did per second");
}

TEST(HostReport, ThePeriodAloneIsNoTable) {
  model::HostChanges c;
  c.states = {{"period", "ns per step", {1e6, 1e6}}};
  EXPECT_TRUE(host_tables(c, true).empty());
  c.states.push_back({"stopped", "ns per step", {0.0, 5e5}});
  EXPECT_EQ(host_tables(c, true).size(), 1U);
}

TEST(HostReport, WhoIsThrottledIsToldInALine) {
  auto c = changes();
  EXPECT_EQ(throttled_text(c), "Throttled by a CPU quota: 0.0 ms/s -> 441.0 ms/s");
  c.counters.push_back({"cgroup.cpu.quota", "", {std::nullopt, 0.3}});
  EXPECT_EQ(throttled_text(c), "Throttled by a CPU quota: 0.0 ms/s -> 441.0 ms/s; quota none -> 0.30 CPUs");
  EXPECT_EQ(throttled_text({}), "");
}

TEST(HostReport, WhereNobodyIsThrottledNoLineSpeaksOfIt) {
  model::HostChanges c;
  c.counters.push_back({"cgroup.cpu.throttled_time", "ns/s", {std::nullopt, 0.0}});
  EXPECT_EQ(throttled_text(c), "");
}

TEST(HostReport, RequestsThatMovedAreToldInALine) {
  model::HostChanges c;
  EXPECT_EQ(requests_text(c), "");
  c.requests = {{"decode", {4, 4}, {1e6, 9e6}, {2e6, 9e6}, true},
                {"queue wait", {4, 4}, {1e6, 9e6}, {2e6, 9e6}, true},
                {"time per output token", {4, 4}, {1e6, 1.1e6}, {2e6, 9e6}, false},
                {"time to first token", {4, 4}, {2e6, 8e6}, {2e6, 9e6}, true}};
  EXPECT_EQ(requests_text(c), "Requests: time to first token 2.000ms -> 8.000ms, queue wait 1.000ms -> 9.000ms (p50)");
  const std::string text = render_terminal(host_tables(c, true), {});
  EXPECT_THAT(text, HasSubstr("time per output token"));
  EXPECT_THAT(text, HasSubstr("no"));
}

TEST(HostReport, NothingIsNoTable) { EXPECT_TRUE(host_tables({}, true).empty()); }

}  // namespace
}  // namespace culprit::report
