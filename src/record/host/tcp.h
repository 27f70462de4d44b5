// The network as the targets feel it: how long a segment of their connections takes there and back, and how many had
// to be sent again. Interfaces tell neither; what both ends wait for each other is in no counter of a CPU or disk.
//
// Of a connection the least time counts that the kernel has seen in five minutes (tcp_min_rtt_wlen), and not the
// smoothed one: who has nothing to answer acknowledges 40 ms late, so that fewer requests would look like a slow
// network. A network that becomes slower is seen by connections that began since, and by the others minutes later;
// one that never answers at once has nothing but late acknowledgements after that time.
//
// The kernel tells of all connections of a network namespace (SOCK_DIAG), with the number of each socket; whose those
// are tell the open files of the targets. Connections to an address of its own are left out: they wait for nobody but
// the CPUs. Another container on the same machine is another machine here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "record/collector/collector.h"
#include "record/host/tracks.h"

namespace culprit::record {

/// A connection as the kernel tells of it.
struct TcpConnection {
  std::uint64_t inode = 0;        ///< of its socket; 0: nobody has accepted it yet
  bool is_local = false;          ///< both ends have the same address, or one that loops back
  Ns rtt = 0;                     ///< the least, from a segment to its acknowledgement; 0: not known
  std::uint64_t segments = 0;     ///< sent and received since it began
  std::uint64_t retransmits = 0;  ///< of them sent again
  bool began_before = false;      ///< what it did so far was before its namespace was looked at
};

/// Adds the connections in a piece of the kernel's answer; stops at what is damaged. True: more pieces follow.
bool take_connections(std::span<const std::byte> piece, std::vector<TcpConnection>& connections);

/// Sockets of the targets.
struct OwnSockets {
  std::set<std::uint64_t> inodes;
  bool all = true;  ///< false: they have more open files than are looked at
};

/// What the targets' connections did since the last look.
class TcpRates {
 public:
  /// `own` gives OwnSockets; asked for only when there are connections of which it is not known whose they are.
  template <class Own>
  void look(Ns now, std::span<const TcpConnection> connections, const Own& own, Emitter& emitter) {
    if (has_unknown(connections)) take_own(own());
    put(now, connections, emitter);
  }
  /// Whose the others are is asked anew: there is another target.
  void forget_others();

 private:
  struct Seen {
    std::uint64_t segments = 0;
    std::uint64_t retransmits = 0;
    bool is_known = false;  ///< whose it is
    bool is_own = false;
    std::uint64_t look = 0;
  };
  bool has_unknown(std::span<const TcpConnection> connections);
  void take_own(const OwnSockets& own);
  void put(Ns now, std::span<const TcpConnection> connections, Emitter& emitter);

  std::map<std::uint64_t, Seen> seen_;  ///< by socket
  std::uint64_t looks_ = 0;
  Ns at_ = 0;
  bool any_ = false;
  Track rtt_{"target.tcp.rtt", "ns"};
  Track least_{"target.tcp.rtt_least", "ns"};
  Track retransmits_{"target.tcp.retransmits", "count/s"};
  Track connections_{"target.tcp.connections", "count"};
};

/// A socket to ask the kernel with, in the network namespace of a process. Movable, closes itself.
class DiagSocket {
 public:
  /// Errors: environment (not supported, or no permission to look into that namespace).
  static Result<DiagSocket> in_namespace_of(std::int64_t pid, bool own_namespace);
  DiagSocket(DiagSocket&& other) noexcept;
  DiagSocket& operator=(DiagSocket&& other) noexcept;
  DiagSocket(const DiagSocket&) = delete;
  DiagSocket& operator=(const DiagSocket&) = delete;
  ~DiagSocket();

  /// Adds all established connections, IPv4 and IPv6. Errors: environment, also where there are more than 100,000.
  Status list(std::vector<TcpConnection>& connections, std::vector<std::byte>& buffer) const;

 private:
  explicit DiagSocket(int fd) : fd_(fd) {}
  int fd_ = -1;
};

/// Samples the targets' connections once a second, more seldom where a look takes long.
class TcpSampler {
 public:
  /// `root`: nothing is asked where it is not empty, because the kernel knows nothing of another root.
  explicit TcpSampler(std::string root);

  void join(std::int64_t pid);
  void leave(std::int64_t pid);
  void sample(Ns now, Emitter& emitter);
  /// Looks a last time, so that what came since the one before is not missing.
  void finish(Ns now, Emitter& emitter);
  void sights(std::vector<Sight>& out) const;

 private:
  struct Namespace {
    std::optional<DiagSocket> socket;
    bool looked = false;
    int failures = 0;
  };
  void look(Ns now, Emitter& emitter);
  void open_missing();
  [[nodiscard]] OwnSockets own_sockets();

  std::string root_;
  std::string own_namespace_;                 ///< "net:[4026531840]"
  std::map<std::int64_t, std::string> pids_;  ///< and the network namespace of each
  std::map<std::string, Namespace> namespaces_;
  bool joined_ = false;  ///< a target, since the last look
  std::vector<TcpConnection> connections_;
  std::vector<std::byte> buffer_;
  TcpRates rates_;
  Ns due_ = 0;
  Ns looked_at_ = 0;
  std::string trouble_;
};

}  // namespace culprit::record
