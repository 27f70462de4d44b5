#include "record/host/tcp.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "core/text.h"

namespace culprit::record {

namespace {

constexpr Ns kEvery = 1'000'000'000;
constexpr std::size_t kMostConnections = 100'000;
constexpr int kMostFailures = 3;           // to open or ask one namespace
constexpr std::size_t kMostFiles = 16384;  // looked at for sockets at once
constexpr std::size_t kMostNamespaces = 8;
constexpr std::size_t kPiece = std::size_t{64} << 10;
constexpr std::uint32_t kEstablished = 1U << 1U;  // TCP_ESTABLISHED of <linux/tcp_states.h>, as a bit

template <class T>
T read_as(std::span<const std::byte> bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), std::min(sizeof(T), bytes.size()));
  return value;
}

constexpr std::size_t aligned(std::size_t length) { return (length + 3) & ~std::size_t{3}; }

/// Whether both ends have addresses of this machine: the same one, or one that loops back.
bool is_local(const inet_diag_msg& message) {
  const auto& source = message.id.idiag_src;
  const auto& peer = message.id.idiag_dst;
  if (std::memcmp(&source, &peer, sizeof(source)) == 0) return true;
  const auto loops = [](std::uint32_t address) { return ntohl(address) >> 24U == 127; };
  if (message.idiag_family == AF_INET) return loops(peer[0]);
  in6_addr address{};
  std::memcpy(&address, &peer, sizeof(address));
  return IN6_IS_ADDR_LOOPBACK(&address) || (IN6_IS_ADDR_V4MAPPED(&address) && loops(peer[3]));
}

TcpConnection connection_of(std::span<const std::byte> payload) {
  const auto message = read_as<inet_diag_msg>(payload);
  TcpConnection connection;
  connection.inode = message.idiag_inode;
  connection.is_local = is_local(message);
  auto rest = payload.subspan(sizeof(inet_diag_msg));
  while (rest.size() >= sizeof(nlattr)) {
    const auto attribute = read_as<nlattr>(rest);
    if (attribute.nla_len < sizeof(nlattr) || attribute.nla_len > rest.size()) break;
    if (attribute.nla_type == INET_DIAG_INFO) {
      const auto info = read_as<tcp_info>(rest.subspan(sizeof(nlattr), attribute.nla_len - sizeof(nlattr)));
      if (info.tcpi_min_rtt != UINT32_MAX) connection.rtt = Ns{info.tcpi_min_rtt} * 1000;
      connection.segments = std::uint64_t{info.tcpi_segs_out} + info.tcpi_segs_in;
      connection.retransmits = info.tcpi_total_retrans;
    }
    rest = rest.subspan(std::min(rest.size(), aligned(attribute.nla_len)));
  }
  return connection;
}

std::string namespace_of(const std::string& process) {
  std::array<char, 64> target{};
  const ssize_t length = readlink(fmt::format("/proc/{}/ns/net", process).c_str(), target.data(), target.size());
  return length > 0 ? std::string(target.data(), static_cast<std::size_t>(length)) : std::string();
}

/// The kernel's answer is that it cannot; else 0.
int refused(std::span<const std::byte> piece) {
  if (piece.size() < sizeof(nlmsghdr) + sizeof(nlmsgerr)) return 0;
  if (read_as<nlmsghdr>(piece).nlmsg_type != NLMSG_ERROR) return 0;
  return -read_as<nlmsgerr>(piece.subspan(sizeof(nlmsghdr))).error;
}

int open_socket() { return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG); }

}  // namespace

bool take_connections(std::span<const std::byte> piece, std::vector<TcpConnection>& connections) {
  while (piece.size() >= sizeof(nlmsghdr)) {
    const auto header = read_as<nlmsghdr>(piece);
    if (header.nlmsg_len < sizeof(nlmsghdr) || header.nlmsg_len > piece.size()) return false;
    if (header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR) return false;
    const auto payload = piece.subspan(sizeof(nlmsghdr), header.nlmsg_len - sizeof(nlmsghdr));
    if (header.nlmsg_type == SOCK_DIAG_BY_FAMILY && payload.size() >= sizeof(inet_diag_msg))
      connections.push_back(connection_of(payload));
    piece = piece.subspan(std::min(piece.size(), aligned(header.nlmsg_len)));
  }
  return true;
}

bool TcpRates::has_unknown(std::span<const TcpConnection> connections) {
  bool any = false;
  for (const TcpConnection& connection : connections)
    if (!connection.is_local && connection.inode != 0) any = !seen_[connection.inode].is_known || any;
  return any;
}

void TcpRates::take_own(const OwnSockets& own) {
  for (auto& [inode, seen] : seen_) {
    if (seen.is_known) continue;
    seen.is_own = own.inodes.contains(inode);
    seen.is_known = seen.is_own || own.all;
  }
}

void TcpRates::forget_others() {
  for (auto& [inode, seen] : seen_)
    if (!seen.is_own) seen.is_known = false;
}

void TcpRates::put(Ns now, std::span<const TcpConnection> connections, Emitter& emitter) {
  ++looks_;
  double weight = 0;
  double sum = 0;
  Ns least = 0;
  std::uint64_t again = 0;
  std::uint64_t own = 0;
  for (const TcpConnection& c : connections) {
    if (c.is_local || c.inode == 0) continue;
    Seen& seen = seen_[c.inode];
    const bool counts = seen.look != 0 || !c.began_before;
    if (seen.is_own) {
      ++own;
      if (c.segments < seen.segments || c.retransmits < seen.retransmits) {
        emitter.count_odd();
      } else if (counts) {
        const std::uint64_t moved = c.segments - seen.segments;
        if (c.rtt > 0 && moved > 0) {
          weight += static_cast<double>(moved);
          sum += static_cast<double>(moved) * static_cast<double>(c.rtt);
          least = least == 0 ? c.rtt : std::min(least, c.rtt);
        }
        again += c.retransmits - seen.retransmits;
      }
    }
    seen.segments = c.segments;
    seen.retransmits = c.retransmits;
    seen.look = looks_;
  }
  std::erase_if(seen_, [&](const auto& entry) { return entry.second.look != looks_; });
  any_ = any_ || own > 0;
  if (any_ && looks_ > 1) {
    // Of the time since the last look.
    if (weight > 0) emitter.put(rtt_, at_, sum / weight);
    if (least > 0) emitter.put(least_, at_, static_cast<double>(least));
    emitter.put(retransmits_, at_, static_cast<double>(again) * 1e9 / static_cast<double>(std::max<Ns>(now - at_, 1)));
    emitter.put(connections_, now, static_cast<double>(own));
  }
  at_ = now;
}

Result<DiagSocket> DiagSocket::in_namespace_of(std::int64_t pid, bool own_namespace) {
  int fd = -1;
  int error = 0;
  const auto open = [&] {
    fd = open_socket();
    if (fd < 0) error = errno;
  };
  if (own_namespace) {
    open();
  } else {
    // A thread of its own goes there, and ends there.
    std::thread([&] {
      const int there = ::open(fmt::format("/proc/{}/ns/net", pid).c_str(), O_RDONLY | O_CLOEXEC);
      if (there < 0 || setns(there, CLONE_NEWNET) != 0)
        error = errno;
      else
        open();
      if (there >= 0) close(there);
    }).join();
  }
  if (fd < 0) return environment_error(errno_text(error), "SOCK_DIAG");
  const timeval patience{0, 100'000};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  return DiagSocket(fd);
}

DiagSocket::DiagSocket(DiagSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

DiagSocket& DiagSocket::operator=(DiagSocket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

DiagSocket::~DiagSocket() {
  if (fd_ >= 0) close(fd_);
}

Status DiagSocket::list(std::vector<TcpConnection>& connections, std::vector<std::byte>& buffer) const {
  buffer.resize(kPiece);
  for (const int family : {AF_INET, AF_INET6}) {
    struct {
      nlmsghdr header;
      inet_diag_req_v2 request;
    } ask{};
    ask.header.nlmsg_len = sizeof(ask);
    ask.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    ask.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    ask.request.sdiag_family = static_cast<__u8>(family);
    ask.request.sdiag_protocol = IPPROTO_TCP;
    ask.request.idiag_states = kEstablished;
    ask.request.idiag_ext = 1U << (INET_DIAG_INFO - 1U);
    if (send(fd_, &ask, sizeof(ask), 0) < 0) return environment_error(errno_text(errno), "SOCK_DIAG");
    for (bool more = true; more;) {
      const ssize_t length = recv(fd_, buffer.data(), buffer.size(), 0);
      if (length < 0 && errno == EINTR) continue;
      if (length <= 0) return environment_error(errno_text(errno), "SOCK_DIAG");
      const auto piece = std::span(buffer).first(static_cast<std::size_t>(length));
      if (const int error = refused(piece); error != 0) {
        if (family == AF_INET6) break;
        return environment_error(errno_text(error), "SOCK_DIAG");
      }
      more = take_connections(piece, connections);
      if (connections.size() > kMostConnections)
        return environment_error("there are more connections than are looked at", "SOCK_DIAG");
    }
  }
  return {};
}

TcpSampler::TcpSampler(std::string root) : root_(std::move(root)), own_namespace_(namespace_of("self")) {}

void TcpSampler::join(std::int64_t pid) {
  if (!root_.empty()) return;
  pids_[pid].clear();
  joined_ = true;
}

void TcpSampler::leave(std::int64_t pid) {
  const auto found = pids_.find(pid);
  if (found == pids_.end()) return;
  const std::string name = std::move(found->second);
  pids_.erase(found);
  if (std::ranges::none_of(pids_, [&](const auto& other) { return other.second == name; })) namespaces_.erase(name);
}

void TcpSampler::open_missing() {
  for (auto& [pid, name] : pids_) {
    if (name.empty()) name = namespace_of(std::to_string(pid));
    if (name.empty() && errno == EACCES) trouble_ = "the network namespace of a target cannot be seen";
    if (name.empty() || (!namespaces_.contains(name) && namespaces_.size() >= kMostNamespaces)) continue;
    Namespace& space = namespaces_[name];
    if (space.socket || space.failures >= kMostFailures) continue;
    auto socket = DiagSocket::in_namespace_of(pid, name == own_namespace_);
    if (socket) {
      space.socket = std::move(*socket);
      space.looked = false;
    } else if (++space.failures >= kMostFailures) {  // else its process may have ended meanwhile
      trouble_ = socket.error().what;
    }
  }
}

OwnSockets TcpSampler::own_sockets() {
  constexpr std::string_view kSocket = "socket:[";
  OwnSockets own;
  std::size_t files = 0;
  std::array<char, 64> target{};
  for (const auto& [pid, name] : pids_) {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(fmt::format("/proc/{}/fd", pid).c_str()), closedir);
    if (!folder) {
      if (errno == EACCES) trouble_ = "the open files of a target cannot be seen";
      continue;
    }
    while (const dirent* entry = readdir(folder.get())) {  // NOLINT(concurrency-mt-unsafe): a handle of its own
      if (++files > kMostFiles) {
        own.all = false;
        return own;
      }
      const ssize_t length = readlinkat(dirfd(folder.get()), entry->d_name, target.data(), target.size());
      std::string_view text(target.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
      if (!text.starts_with(kSocket) || !text.ends_with(']')) continue;
      text.remove_prefix(kSocket.size());
      text.remove_suffix(1);
      if (const auto inode = parse_number<std::uint64_t>(text)) own.inodes.insert(*inode);
    }
  }
  return own;
}

void TcpSampler::look(Ns now, Emitter& emitter) {
  if (joined_) rates_.forget_others();
  joined_ = false;
  open_missing();
  connections_.clear();
  for (auto& [name, space] : namespaces_) {
    if (!space.socket) continue;
    const std::size_t before = connections_.size();
    if (const Status status = space.socket->list(connections_, buffer_); !status) {
      // What it has not told yet would be taken for the next answer.
      trouble_ = status.error().what;
      emitter.count_odd();
      space.socket.reset();
      ++space.failures;
      return;
    }
    if (!space.looked)
      for (TcpConnection& connection : std::span(connections_).subspan(before)) connection.began_before = true;
    space.looked = true;
  }
  rates_.look(
      now, connections_, [&] { return own_sockets(); }, emitter);
}

void TcpSampler::sample(Ns now, Emitter& emitter) {
  if (pids_.empty() || now < due_) return;
  const Ns begin = thread_cpu();
  look(now, emitter);
  // What the first look finds is only where the counting begins.
  const Ns longest = looked_at_ == 0 ? kEvery * 8 / 10 : kLongestRest;
  due_ = now + std::clamp((thread_cpu() - begin) * kRest, kEvery * 8 / 10, longest);
  looked_at_ = now;
}

void TcpSampler::finish(Ns now, Emitter& emitter) {
  if (!pids_.empty() && looked_at_ != 0 && now - looked_at_ >= kEvery / 5) look(now, emitter);
}

void TcpSampler::sights(std::vector<Sight>& out) const {
  std::string why = root_.empty() ? trouble_ : "another root";
  if (why.empty() && namespaces_.empty()) {
    std::vector<TcpConnection> connections;
    std::vector<std::byte> buffer;
    const auto socket = DiagSocket::in_namespace_of(0, true);
    const Status status = socket ? socket->list(connections, buffer) : Status(socket.error());
    if (!status) why = status.error().what;
  }
  const bool fine = why.empty();
  out.push_back({"network: time there and back of the targets' TCP connections, segments sent again", fine,
                 std::move(why), fine ? "" : "record as root, on a kernel with inet_diag (modprobe tcp_diag)"});
}

}  // namespace culprit::record
