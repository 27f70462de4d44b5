// Reads the JSON traces of Kineto (PyTorch on CUDA, HIP, MTIA) and of anything else that writes Chrome's trace event
// format: an object with "traceEvents" anywhere in it, or a bare list; plain, gzip or zstd.
//
// Workers take turns in reading (and inflating) the next piece of text, cut at a likely event boundary, and turn their
// piece into rows while it is still in their cache; the calling thread joins the rows in order. A cut is a guess (the
// pattern may stand inside a string). By induction it is exact all the same: the first piece begins at an event, and a
// piece whose events end where its text ends proves that the next piece begins at one too. Where that fails the pieces
// are joined and read again. Memory beyond the trace itself: (2 workers + 1) pieces of 256 KiB and their rows, or up to
// 64 MiB for a single event. Pieces are small because fresh memory is dear, and what fits the cache is read from there.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "core/error.h"
#include "formats/io/input.h"
#include "trace/trace.h"

namespace culprit::formats::kineto {

struct ReadOptions {
  unsigned workers = 1;
  std::function<void(std::uint64_t consumed_bytes)> progress = {};  ///< called from the calling thread
  std::size_t piece_bytes = std::size_t{256} << 10;                 ///< size of the pieces; small ones are for tests
};

/// True when the text begins like a JSON object or list.
bool looks_like_json(std::string_view start);

/// The trace of one file. Errors: not JSON, no events in it, unreadable.
Result<Trace> read(Input input, const ReadOptions& options);

/// Puts the members around the events (deviceProperties, distributedInfo, baseTimeNanoseconds, …) into `trace`.
void apply_member(std::string_view key, std::string_view json, Trace& trace);

}  // namespace culprit::formats::kineto
