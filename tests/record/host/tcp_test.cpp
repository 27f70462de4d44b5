#include "record/host/tcp.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "record/host/out.h"

namespace culprit::record {
namespace {

using test::out_to;
using test::Samples;
using Bytes = std::vector<std::byte>;

template <class T>
void append(Bytes& bytes, const T& value) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof(T));
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

/// A message of the kernel's answer, with `info_bytes` of what it knows of a connection.
Bytes message(std::uint32_t inode, int family, const char* peer, const tcp_info& info,
              std::size_t info_bytes = sizeof(tcp_info)) {
  Bytes bytes;
  nlmsghdr header{};
  header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  header.nlmsg_len = static_cast<__u32>(sizeof(nlmsghdr) + sizeof(inet_diag_msg) + sizeof(nlattr) + info_bytes);
  append(bytes, header);
  inet_diag_msg told{};
  told.idiag_family = static_cast<__u8>(family);
  told.idiag_inode = inode;
  inet_pton(family, family == AF_INET ? "10.1.0.1" : "fd00::1", &told.id.idiag_src);
  inet_pton(family, peer, &told.id.idiag_dst);
  append(bytes, told);
  append(bytes, nlattr{static_cast<__u16>(sizeof(nlattr) + info_bytes), INET_DIAG_INFO});
  const std::size_t at = bytes.size();
  bytes.resize(at + info_bytes);
  std::memcpy(bytes.data() + at, &info, std::min(info_bytes, sizeof(info)));
  return bytes;
}

tcp_info info_of(std::uint32_t rtt_us, std::uint32_t segments, std::uint32_t retransmits) {
  tcp_info info{};
  info.tcpi_min_rtt = rtt_us;
  info.tcpi_rtt = 40'000;  // the other end had nothing to answer
  info.tcpi_segs_out = segments;
  info.tcpi_segs_in = 1;
  info.tcpi_total_retrans = retransmits;
  return info;
}

std::vector<TcpConnection> taken(const Bytes& bytes) {
  std::vector<TcpConnection> connections;
  take_connections(bytes, connections);
  return connections;
}

TEST(TakeConnections, WhatTheKernelTellsOfEach) {
  Bytes bytes = message(7, AF_INET, "10.1.0.2", info_of(250, 99, 3));
  const Bytes second = message(8, AF_INET6, "fd00::2", info_of(UINT32_MAX, 4, 0));
  bytes.insert(bytes.end(), second.begin(), second.end());
  std::vector<TcpConnection> connections;
  EXPECT_TRUE(take_connections(bytes, connections)) << "more may follow";
  ASSERT_EQ(connections.size(), 2U);
  EXPECT_EQ(connections[0].inode, 7U);
  EXPECT_EQ(connections[0].rtt, 250'000);
  EXPECT_EQ(connections[0].segments, 100U);
  EXPECT_EQ(connections[0].retransmits, 3U);
  EXPECT_FALSE(connections[0].is_local);
  EXPECT_EQ(connections[1].rtt, 0) << "not measured yet";
}

TEST(TakeConnections, ThoseInsideOfTheMachineAreKnown) {
  for (const auto& [family, peer] : {std::pair(AF_INET, "127.0.0.9"), std::pair(AF_INET, "10.1.0.1"),
                                     std::pair(AF_INET6, "::1"), std::pair(AF_INET6, "::ffff:127.0.0.1")})
    EXPECT_TRUE(taken(message(7, family, peer, {})).at(0).is_local) << peer;
  EXPECT_FALSE(taken(message(7, AF_INET6, "::ffff:10.1.0.2", {})).at(0).is_local);
}

TEST(TakeConnections, TheEndEndsIt) {
  Bytes bytes;
  append(bytes, nlmsghdr{sizeof(nlmsghdr), NLMSG_DONE, 0, 0, 0});
  std::vector<TcpConnection> connections;
  EXPECT_FALSE(take_connections(bytes, connections));
  EXPECT_TRUE(connections.empty());
}

TEST(TakeConnections, DamagedPiecesAreReadAsFarAsTheyGo) {
  const Bytes whole = message(7, AF_INET, "10.1.0.2", info_of(250, 99, 3));
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_TRUE(taken(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length))).empty()) << length;
  // An older kernel knows less, a newer one more.
  EXPECT_EQ(taken(message(7, AF_INET, "10.1.0.2", info_of(250, 99, 3), 8)).at(0).segments, 0U);
  EXPECT_EQ(taken(message(7, AF_INET, "10.1.0.2", info_of(250, 99, 3), sizeof(tcp_info) + 40)).at(0).segments, 100U);
  Bytes odd = whole;
  const nlattr attribute{2, INET_DIAG_INFO};  // shorter than itself
  std::memcpy(odd.data() + sizeof(nlmsghdr) + sizeof(inet_diag_msg), &attribute, sizeof(attribute));
  EXPECT_EQ(taken(odd).at(0).segments, 0U);
}

struct Rates : testing::Test {
  Samples samples;
  Emitter emitter{out_to(samples)};
  TcpRates rates;
  int asked = 0;

  void look(Ns now, const std::vector<TcpConnection>& connections, const OwnSockets& own = {{7, 9}, true}) {
    rates.look(
        now, connections,
        [&] {
          ++asked;
          return own;
        },
        emitter);
  }
};

/// One to another machine, by the time there and back in us.
TcpConnection to_another(std::uint64_t inode, Ns rtt_us, std::uint64_t segments, std::uint64_t retransmits,
                         bool began_before = false) {
  return {inode, false, rtt_us * 1000, segments, retransmits, began_before};
}

TEST_F(Rates, MeansOfWhatTheTargetsOwnConnectionsDidSinceTheLastLook) {
  look(kSecond, {to_another(7, 100, 1000, 5, true), to_another(8, 9000, 10, 50, true)});
  EXPECT_TRUE(samples.series.empty());
  look(3 * kSecond, {to_another(7, 100, 1300, 7), to_another(8, 9000, 1000, 99), to_another(9, 500, 100, 2)});
  EXPECT_DOUBLE_EQ(samples.last("target.tcp.rtt"), 200'000) << "300 segments of one, 100 of the other";
  EXPECT_DOUBLE_EQ(samples.last("target.tcp.rtt_least"), 100'000);
  EXPECT_DOUBLE_EQ(samples.last("target.tcp.retransmits"), 2);
  EXPECT_DOUBLE_EQ(samples.last("target.tcp.connections"), 2);
  look(4 * kSecond, {to_another(7, 100, 1300, 7)});
  EXPECT_DOUBLE_EQ(samples.last("target.tcp.retransmits"), 0);
  EXPECT_DOUBLE_EQ(samples.last("target.tcp.connections"), 1);
  EXPECT_EQ(samples.find("target.tcp.rtt")->samples.size(), 1U) << "nothing was sent";
}

TEST_F(Rates, WhatConnectionsOfANewNamespaceDidBeforeIsNotOfThisSecond) {
  look(kSecond, {});
  look(2 * kSecond, {to_another(7, 100, 1'000'000, 5000, true), to_another(9, 300, 10, 1)});
  EXPECT_DOUBLE_EQ(samples.last("target.tcp.retransmits"), 1);
  EXPECT_DOUBLE_EQ(samples.last("target.tcp.rtt"), 300'000);
  look(3 * kSecond, {to_another(7, 100, 1'000'010, 5002), to_another(9, 300, 10, 1)});
  EXPECT_DOUBLE_EQ(samples.last("target.tcp.retransmits"), 2);
}

TEST_F(Rates, ProgramsThatTalkToNoOtherMachineHaveNone) {
  for (Ns at = kSecond; at < 4 * kSecond; at += kSecond)
    look(at, {{7, true, 100'000, static_cast<std::uint64_t>(at), 5}, {0, false, 1, static_cast<std::uint64_t>(at), 1}});
  EXPECT_TRUE(samples.series.empty());
  EXPECT_EQ(asked, 0);
}

TEST_F(Rates, WhoseTheyAreIsAskedOnce) {
  const std::vector connections = {to_another(7, 1, 1, 0), to_another(8, 1, 1, 0)};
  look(kSecond, connections);
  look(2 * kSecond, connections);
  EXPECT_EQ(asked, 1);
  rates.forget_others();  // another target, which may have it
  look(3 * kSecond, connections, {{8}, true});
  EXPECT_EQ(asked, 2);
  EXPECT_DOUBLE_EQ(samples.last("target.tcp.connections"), 2);
}

TEST_F(Rates, WhereNotAllFilesWereLookedAtItIsAskedAgain) {
  const std::vector connections = {to_another(7, 1, 1, 0), to_another(8, 1, 1, 0)};
  look(kSecond, connections, {{7}, false});
  look(2 * kSecond, connections, {{8}, false});
  EXPECT_EQ(asked, 2);
  EXPECT_DOUBLE_EQ(samples.last("target.tcp.connections"), 2);
}

TEST_F(Rates, ANumberThatGoesBackIsCounted) {
  look(kSecond, {to_another(7, 100, 1000, 5)});
  look(2 * kSecond, {to_another(7, 100, 900, 5)});
  EXPECT_EQ(emitter.odd(), 1U);
  EXPECT_EQ(samples.find("target.tcp.rtt"), nullptr);
}

TEST(DiagSocket, ThisMachinesConnectionsAreListed) {
  auto socket = DiagSocket::in_namespace_of(getpid(), true);
  if (!socket) GTEST_SKIP() << to_string(socket.error());
  std::vector<TcpConnection> connections;
  std::vector<std::byte> buffer;
  if (const Status status = socket->list(connections, buffer); !status) GTEST_SKIP() << to_string(status.error());
  const int listening = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {}};
  socklen_t length = sizeof(address);
  auto* where = reinterpret_cast<sockaddr*>(&address);  // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
  ASSERT_EQ(bind(listening, where, sizeof(address)), 0);
  ASSERT_EQ(listen(listening, 1), 0);
  ASSERT_EQ(getsockname(listening, where, &length), 0);
  const int calling = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(connect(calling, where, sizeof(address)), 0);
  const int accepted = accept(listening, nullptr, nullptr);
  connections.clear();
  ASSERT_TRUE(socket->list(connections, buffer));
  EXPECT_GE(std::ranges::count_if(connections, [](const TcpConnection& c) { return c.is_local && c.rtt > 0; }), 2);
  for (const int fd : {listening, calling, accepted}) close(fd);
}

TEST(TcpSampler, NothingIsAskedOfAMachineThatATestHasMade) {
  Samples samples;
  Emitter emitter{out_to(samples)};
  TcpSampler sampler("/nowhere");
  sampler.join(getpid());
  sampler.sample(kSecond, emitter);
  sampler.sample(3 * kSecond, emitter);
  std::vector<Sight> sights;
  sampler.sights(sights);
  ASSERT_EQ(sights.size(), 1U);
  EXPECT_FALSE(sights[0].available);
}

}  // namespace
}  // namespace culprit::record
