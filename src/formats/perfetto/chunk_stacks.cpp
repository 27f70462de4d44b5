#include <fmt/format.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/utf8.h"
#include "formats/perfetto/chunk.h"
#include "formats/perfetto/trace.pb.h"

namespace culprit::perfetto {

namespace {

constexpr std::size_t kMostName = 1024;

/// Numbers as bytes: what is made of the same numbers is the same.
std::string key_of(std::span<const std::uint64_t> numbers) {
  std::string key(numbers.size_bytes(), '\0');
  std::memcpy(key.data(), numbers.data(), numbers.size_bytes());
  return key;
}

/// The number of a text, which goes into a list when it is new; 0: no text.
template <class List>
std::uint64_t number_of(Interned& table, std::string_view text, List* list) {
  if (text.empty()) return 0;
  bool added = false;
  const std::uint64_t number = table.number(text, added);
  if (added) {
    proto::InternedString& entry = *list->Add();
    entry.set_iid(number);
    entry.set_str(std::string(text));
  }
  return number;
}

proto::Frame::Kind kind_of(CodeFrame::Kind kind) {
  switch (kind) {
    case CodeFrame::Kind::kernel:
      return proto::Frame::KIND_KERNEL;
    case CodeFrame::Kind::jit:
      return proto::Frame::KIND_JIT;
    case CodeFrame::Kind::interpreted:
      return proto::Frame::KIND_INTERPRETED;
    case CodeFrame::Kind::native:
      break;
  }
  return proto::Frame::KIND_NATIVE;
}

}  // namespace

std::uint64_t StackInterner::number(std::span<const CodeFrame> frames, proto::InternedData& data) {
  std::vector<std::uint64_t> stack;
  stack.reserve(frames.size());
  for (const CodeFrame& frame : frames) {
    const std::string function = repair_utf8(frame.function.substr(0, kMostName));
    const std::string module = repair_utf8(frame.module.substr(0, kMostName));
    const std::uint64_t name = number_of(functions_, function, data.mutable_function_names());
    std::uint64_t mapping_number = 0;
    if (!module.empty()) {
      const std::uint64_t path = number_of(paths_, module, data.mutable_mapping_paths());
      const std::uint64_t build = number_of(build_ids_, frame.build_id, data.mutable_build_ids());
      bool added = false;
      const std::uint64_t parts[] = {path, build};
      mapping_number = mappings_.number(key_of(parts), added);
      if (added) {
        proto::Mapping& mapping = *data.add_mappings();
        mapping.set_iid(mapping_number);
        if (build != 0) mapping.set_build_id(build);
        mapping.add_path_string_ids(path);
      }
    }
    bool added = false;
    const std::uint64_t parts[] = {name, mapping_number, name != 0 ? 0 : frame.address,
                                   static_cast<std::uint64_t>(frame.kind)};
    const std::uint64_t number = frames_.number(key_of(parts), added);
    if (added) {
      proto::Frame& entry = *data.add_frames();
      entry.set_iid(number);
      if (name != 0) entry.set_function_name_id(name);
      if (mapping_number != 0) {
        entry.set_mapping_id(mapping_number);
        entry.set_rel_pc(frame.address);
      }
      entry.set_kind(kind_of(frame.kind));
    }
    stack.push_back(number);
  }
  bool added = false;
  const std::uint64_t number = stacks_.number(key_of(stack), added);
  if (added) {
    proto::Callstack& entry = *data.add_callstacks();
    entry.set_iid(number);
    for (const std::uint64_t frame : stack) entry.add_frame_ids(frame);
  }
  return number;
}

void StackInterner::clear() {
  for (Interned* table : {&functions_, &paths_, &build_ids_, &mappings_, &frames_, &stacks_}) table->clear();
}

void Chunk::stack(const StackTaken& taken, std::span<const CodeFrame> frames) {
  proto::TracePacket packet;
  packet.set_trusted_packet_sequence_id(kSequence);
  packet.set_sequence_flags(proto::TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
  packet.set_timestamp(static_cast<std::uint64_t>(taken.at));
  proto::PerfSample& sample = *packet.mutable_perf_sample();
  sample.set_cpu(taken.cpu);
  sample.set_pid(static_cast<std::uint32_t>(taken.pid));
  sample.set_tid(static_cast<std::uint32_t>(taken.tid));
  sample.set_cpu_mode(taken.in_kernel ? proto::Profiling::MODE_KERNEL : proto::Profiling::MODE_USER);
  if (!frames.empty()) {
    proto::InternedData data;
    sample.set_callstack_iid(stacks_.number(frames, data));
    if (data.callstacks_size() > 0) packet.mutable_interned_data()->Swap(&data);
  }
  add(packet);
}

}  // namespace culprit::perfetto
