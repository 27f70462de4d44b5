// Of a whole machine: the program that works, not who is beside it.
#include <gtest/gtest.h>

#include <gmock/gmock.h>

#include "cycles/work_units.h"
#include "make_recorded.h"

namespace culprit::cycles {
namespace {

using testing::HasSubstr;

/// A daemon that was there first and hardly works, and a server that does; each receives and sends.
Recorded daemon_and_server(bool whole_machine, Ns daemon_works = kMs / 10) {
  Recorded r;
  if (whole_machine) r.fact("record.whole_machine", "yes");
  auto daemon = r.thread(7, 7, "dbus-daemon", "dbus-daemon");
  r.serve(daemon, 100, 10 * kMs - daemon_works, 0, daemon_works);
  r.calls(daemon, kSecond, "recvmsg", 900);
  r.calls(daemon, kSecond, "sendmsg", 900);
  auto server = r.thread(900, 900, "server", "server");
  r.serve(server, 100, 4 * kMs, 0, 6 * kMs);
  r.calls(server, kSecond, "read", 300);
  r.calls(server, kSecond, "write", 300);
  return r;
}

TEST(WorkOfAMachine, IsThatOfTheProgramThatTookMost) {
  const model::WorkUnits work = daemon_and_server(true).find();
  const model::WorkUnit& unit = work.units[0];
  EXPECT_EQ(unit.process, "server");
  EXPECT_EQ(unit.kind, model::UnitKind::request) << "who is beside it makes it no program of several";
  EXPECT_EQ(unit.count, 300U);
  EXPECT_THAT(unit.reason, HasSubstr("of all programs of the machine server took 98 % of the time"));
  EXPECT_EQ(work.units.back().process, "dbus-daemon");
}

TEST(WorkOfAMachine, OfTwoThatWorkTheOneThatTookMostComesFirst) {
  const model::WorkUnits work = daemon_and_server(true, 3 * kMs).find();
  EXPECT_EQ(work.units[0].process, "server");
  EXPECT_EQ(work.units[0].kind, model::UnitKind::message);
  EXPECT_EQ(work.units[1].process, "dbus-daemon");
}

TEST(WorkOfAMachine, WhereTheProcessesWereAskedForTheFirstOneFacesTheUser) {
  const model::WorkUnits work = daemon_and_server(false).find();
  EXPECT_EQ(work.units[0].process, "dbus-daemon");
  EXPECT_EQ(work.units[0].reason.find("of the machine"), std::string::npos);
}

TEST(WorkOfAMachine, AProgramThatOnlyComputesComesBeforeABystandersMessages) {
  Recorded r;
  r.fact("record.whole_machine", "yes");
  auto daemon = r.thread(7, 7, "dbus-daemon", "dbus-daemon");
  r.serve(daemon, 100, 9 * kMs, 0, kMs / 10);
  r.calls(daemon, kSecond, "recvmsg", 900);
  r.calls(daemon, kSecond, "sendmsg", 900);
  auto solver = r.thread(900, 900, "solver", "solver");
  r.serve(solver, 50, 5 * kMs, 0, 15 * kMs, "futex");
  const model::WorkUnits work = r.find();
  EXPECT_EQ(work.units[0].process, "solver");
  EXPECT_EQ(work.units[0].kind, model::UnitKind::wakeup);
  EXPECT_EQ(work.units[1].process, "dbus-daemon");
}

TEST(WorkOfAMachine, WhereNothingElseIsFoundItIsABystanders) {
  Recorded r;
  r.fact("record.whole_machine", "yes");
  auto daemon = r.thread(7, 7, "dbus-daemon", "dbus-daemon");
  r.serve(daemon, 100, 9 * kMs, 0, kMs);
  r.calls(daemon, kSecond, "recvmsg", 900);
  r.calls(daemon, kSecond, "sendmsg", 900);
  const model::WorkUnits work = r.find();
  EXPECT_EQ(work.units[0].process, "dbus-daemon");
  EXPECT_EQ(work.units[0].kind, model::UnitKind::request);
}

}  // namespace
}  // namespace culprit::cycles
