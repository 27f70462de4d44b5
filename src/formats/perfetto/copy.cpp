#include "formats/perfetto/copy.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "formats/perfetto/chunk.h"
#include "formats/perfetto/chunk_file.h"
#include "formats/perfetto/packets.h"
#include "formats/perfetto/trace.pb.h"
#include "formats/perfetto/writer.h"

namespace culprit::perfetto {

namespace {

constexpr int kLevel = 1;  ///< of deflate
constexpr std::size_t kChunkBytes = std::size_t{256} << 10;

/// Gathers packets into chunks.
class Copier {
 public:
  explicit Copier(ChunkFile file) : file_(std::move(file)) {}

  void take(Packet packet) {
    if (failure_) return;
    if (!ours_) ours_ = names_state(packet);
    std::array<std::uint8_t, 2 * kMaxVarint> head{};
    const std::uint8_t* end =
        put_raw(put_raw(head.data(), tag(proto::Trace::kPacketFieldNumber, Wire::length)), packet.size());
    const auto head_size = static_cast<std::size_t>(end - head.data());
    const bool alone = head_size + packet.size() > kChunkBytes;
    if (alone || chunk_.size() + head_size + packet.size() > kChunkBytes) hand_over();
    append(chunk_, head.data(), end);
    chunk_.insert(chunk_.end(), packet.begin(), packet.end());
    if (alone) hand_over();
  }

  /// What the original lost, as a fact of the copy. A recording that was cut off says so itself.
  void note(const Losses& losses) {
    std::uint64_t places = losses.total(Severity::data_loss);
    if (ours_) places -= losses[LossReason::truncated_tail];
    if (places == 0) return;
    proto::TracePacket packet;
    packet.set_trusted_packet_sequence_id(kSequence);
    proto::TraceAttributes::Attribute& fact = *packet.mutable_trace_attributes()->add_attribute();
    fact.set_key(std::string(kDamageFact));
    fact.set_string_value(std::to_string(places));
    const std::string bytes = packet.SerializeAsString();
    take({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  }

  Status close() {
    hand_over();
    if (failure_) return *failure_;
    return file_.close();
  }

 private:
  static bool names_state(Packet packet) {
    const std::string_view text(reinterpret_cast<const char*>(packet.data()), packet.size());
    return text.find(kFileState) != std::string_view::npos;
  }

  void hand_over() {
    if (chunk_.empty() || failure_) return;
    const Status written =
        chunk_.size() <= ChunkFile::kMostPlain ? file_.write_deflated(chunk_, kSequence) : file_.write_plain(chunk_);
    if (!written) failure_ = written.error();
    chunk_.clear();
  }

  ChunkFile file_;
  Bytes chunk_;
  std::optional<Error> failure_;
  bool ours_ = false;  ///< the file says itself whether it was ended
};

}  // namespace

Status copy_trace(formats::Input input, formats::Expansion expansion, const std::string& path, bool replace,
                  const std::function<void(std::uint64_t)>& progress) {
  auto file = ChunkFile::create(path, replace, kLevel);
  if (!file) return file.error();
  Copier copier(std::move(*file));
  Losses losses;
  const auto counts = for_each_packet(
      input, expansion, losses, [&](Packet packet) { copier.take(packet); }, progress);
  if (!counts) return counts.error();
  if (counts->packets == 0) return input_error("holds no whole packet", input.path(), "copy the file again");
  copier.note(losses);
  return copier.close();
}

}  // namespace culprit::perfetto
