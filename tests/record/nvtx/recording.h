// A recording as the format's own messages say it, for tests: slices and instants with their tracks, metadata.
#pragma once

#include <isa-l/igzip_lib.h>

#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "formats/perfetto/trace.pb.h"

namespace culprit::test {

struct RecordedSlice {
  std::int64_t pid = 0;
  std::int64_t tid = 0;
  std::string track;  ///< empty: the thread's own
  std::string name;
  std::string category;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  ///< 0: never
  bool is_instant = false;
  std::size_t depth = 0;
  std::map<std::string, std::string> arguments;
};

struct Recording {
  std::vector<RecordedSlice> slices;  ///< by begin as written
  std::uint64_t ends_without_begin = 0;
  std::map<std::int64_t, std::string> thread_names;

  [[nodiscard]] std::vector<RecordedSlice> named(std::string_view name) const {
    std::vector<RecordedSlice> out;
    for (const RecordedSlice& slice : slices)
      if (slice.name == name) out.push_back(slice);
    return out;
  }
};

namespace recording_detail {

namespace proto = culprit::perfetto::proto;

inline std::string inflated(const std::string& bytes) {
  std::string out;
  std::vector<std::uint8_t> block(1 << 16);
  inflate_state state;
  isal_inflate_init(&state);
  state.crc_flag = ISAL_ZLIB;
  state.next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(bytes.data()));
  state.avail_in = static_cast<std::uint32_t>(bytes.size());
  do {
    state.next_out = block.data();
    state.avail_out = static_cast<std::uint32_t>(block.size());
    if (isal_inflate(&state) != ISAL_DECOMP_OK) break;
    out.append(reinterpret_cast<char*>(block.data()), block.size() - state.avail_out);
  } while (state.block_state != ISAL_BLOCK_FINISH);
  return out;
}

class Decoder {
 public:
  void packet(const proto::TracePacket& p) {
    if (p.has_compressed_packets()) {
      proto::Trace inner;
      if (inner.ParseFromString(inflated(p.compressed_packets())))
        for (const auto& one : inner.packet()) packet(one);
      return;
    }
    if ((p.sequence_flags() & 1) != 0 || p.incremental_state_cleared()) names_ = categories_ = keys_ = texts_ = {};
    for (const auto& entry : p.interned_data().event_names()) names_[entry.iid()] = entry.name();
    for (const auto& entry : p.interned_data().event_categories()) categories_[entry.iid()] = entry.name();
    for (const auto& entry : p.interned_data().debug_annotation_names()) keys_[entry.iid()] = entry.name();
    for (const auto& entry : p.interned_data().debug_annotation_string_values()) texts_[entry.iid()] = entry.str();
    if (p.has_track_descriptor()) track(p.track_descriptor());
    if (p.has_thread_descriptor()) out.thread_names[p.thread_descriptor().tid()] = p.thread_descriptor().thread_name();
    for (const auto& thread : p.process_tree().threads())
      if (!thread.name().empty()) out.thread_names[thread.tid()] = thread.name();
    if (p.has_track_event()) event(p.track_event(), p.timestamp());
  }

  Recording out;

 private:
  struct Track {
    std::string name;
    std::uint64_t parent = 0;
    std::int64_t pid = 0, tid = 0;
    std::vector<std::size_t> open;
  };

  void track(const proto::TrackDescriptor& d) {
    Track& to = tracks_[d.uuid()];
    to.parent = d.parent_uuid();
    if (d.has_process()) to.pid = d.process().pid();
    if (d.has_thread()) {
      to.pid = d.thread().pid();
      to.tid = d.thread().tid();
      if (d.thread().has_thread_name()) out.thread_names[to.tid] = d.thread().thread_name();
    } else {
      to.name = d.name().empty() ? d.static_name() : d.name();
    }
  }

  void event(const proto::TrackEvent& e, std::uint64_t at) {
    Track& on = tracks_[e.track_uuid()];
    if (e.type() == proto::TrackEvent::TYPE_SLICE_END) {
      if (on.open.empty()) {
        ++out.ends_without_begin;
        return;
      }
      out.slices[on.open.back()].end = at;
      on.open.pop_back();
      return;
    }
    if (e.type() != proto::TrackEvent::TYPE_SLICE_BEGIN && e.type() != proto::TrackEvent::TYPE_INSTANT) return;
    RecordedSlice slice;
    const Track* where = &on;
    slice.track = on.name;
    while (where->pid == 0 && where->parent != 0) where = &tracks_[where->parent];
    slice.pid = where->pid;
    slice.tid = where->tid;
    slice.name = e.name_iid() != 0 ? names_[e.name_iid()] : e.name();
    if (e.categories_size() > 0) slice.category = e.categories(0);
    if (e.category_iids_size() > 0) slice.category = categories_[e.category_iids(0)];
    slice.begin = at;
    slice.depth = on.open.size();
    slice.is_instant = e.type() == proto::TrackEvent::TYPE_INSTANT;
    for (const auto& a : e.debug_annotations()) {
      std::string& value = slice.arguments[a.name_iid() != 0 ? keys_[a.name_iid()] : a.name()];
      if (a.has_int_value()) value = std::to_string(a.int_value());
      if (a.has_uint_value()) value = std::to_string(a.uint_value());
      if (a.has_double_value()) value = std::to_string(a.double_value());
      if (a.has_string_value()) value = a.string_value();
      if (a.has_string_value_iid()) value = texts_[a.string_value_iid()];
    }
    if (!slice.is_instant) on.open.push_back(out.slices.size());
    out.slices.push_back(slice);
  }

  std::map<std::uint64_t, std::string> names_, categories_, keys_, texts_;
  std::map<std::uint64_t, Track> tracks_;
};

}  // namespace recording_detail

inline Recording read_recording(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  perfetto::proto::Trace trace;
  recording_detail::Decoder decoder;
  if (trace.ParseFromString(bytes))
    for (const auto& packet : trace.packet()) decoder.packet(packet);
  return std::move(decoder.out);
}

}  // namespace culprit::test
