#include "tracegen/writer.h"

#include <fmt/format.h>

#include <cstring>

namespace culprit::tracegen {

namespace {

/// More than any event takes: the longest name is below 300 bytes, and an event has about twenty short members.
constexpr std::size_t kMaxEvent = 8192;

constexpr std::array<std::string_view, kCats> kModern = {"kernel",          "gpu_memcpy", "gpu_memset",
                                                         "cuda_runtime",    "cpu_op",     "user_annotation",
                                                         "python_function", "sched",      "Trace"};
constexpr std::array<std::string_view, kCats> kOld = {
    "Kernel", "Memcpy", "Memset", "Runtime", "Operator", "user_annotation", "python_function", "sched", "Trace"};

}  // namespace

TraceWriter::TraceWriter(const Options& options, std::uint32_t rank)
    : style_(options.style),
      compact_(options.compact),
      whole_us_(options.style == Style::kineto_old),
      text_ids_(options.style == Style::kineto_old),
      absolute_(options.style != Style::kineto),
      rank_(rank),
      ranks_(options.ranks) {}

void TraceWriter::put(std::string_view text) {
  std::memcpy(at_, text.data(), text.size());
  at_ += text.size();
}

void TraceWriter::put_number(std::int64_t value) {
  const fmt::format_int digits(value);
  put({digits.data(), digits.size()});
}

void TraceWriter::put_us(Ns t) {
  put_number(t / 1000);
  if (whole_us_) return;
  const auto fraction = static_cast<unsigned>(t % 1000);
  *at_++ = '.';
  *at_++ = static_cast<char>('0' + fraction / 100);
  *at_++ = static_cast<char>('0' + fraction / 10 % 10);
  *at_++ = static_cast<char>('0' + fraction % 10);
}

void TraceWriter::key(std::string_view name) {
  if (!first_member_) put(compact_ ? "," : ", ");
  first_member_ = false;
  *at_++ = '"';
  put(name);
  put(compact_ ? "\":" : "\": ");
}

void TraceWriter::text(std::string_view name, std::string_view value) {
  key(name);
  *at_++ = '"';
  put(value);
  *at_++ = '"';
}

void TraceWriter::number(std::string_view name, std::int64_t value) {
  key(name);
  put_number(value);
}

void TraceWriter::triple(std::string_view name, const std::array<std::uint32_t, 3>& value) {
  key(name);
  *at_++ = '[';
  for (std::size_t i = 0; i < 3; ++i) {
    if (i != 0) put(compact_ ? "," : ", ");
    put_number(value[i]);
  }
  *at_++ = ']';
}

void TraceWriter::process_and_thread(std::int64_t pid, std::int64_t tid) {
  if (!text_ids_) {
    number("pid", pid);
    number("tid", tid);
    return;
  }
  key("pid");
  *at_++ = '"';
  put_number(pid);
  put("\"");
  key("tid");
  put(pid < 1000 ? "\"stream " : "\"");  // devices are numbered from 0, processes of the host from 1000
  put_number(tid);
  *at_++ = '"';
}

void TraceWriter::time(Ns at) {
  key("ts");
  put_us(absolute_ ? kBaseNs + at : at);
}

void TraceWriter::begin_event(std::string_view phase) {
  at_ = sink_.reserve(kMaxEvent);
  if (written_.events++ != 0) put(compact_ ? "," : ",\n");
  put(compact_ ? "{" : "  {\n    ");
  first_member_ = true;
  text("ph", phase);
}

void TraceWriter::end_event() {
  put(compact_ ? "}" : "\n  }");
  sink_.commit(at_);
}

void TraceWriter::begin_args() {
  if (compact_) {
    key("args");
    *at_++ = '{';
  } else {
    put(",\n    \"args\": {\n      ");
  }
  first_member_ = true;
}

void TraceWriter::end_args() {
  put(compact_ ? "}" : "\n    }");
  first_member_ = false;
}

Status TraceWriter::open(const std::string& path, bool replace) {
  path_ = path;
  if (Status s = sink_.open(path, replace); !s) return s;
  header();
  return {};
}

void TraceWriter::header() {
  if (style_ == Style::legacy_array) {
    sink_.write(compact_ ? "[" : "[\n");
    return;
  }
  std::string out = "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n";
  for (std::uint32_t d = 0; d < ranks_; ++d)
    out += fmt::format(
        "    {{\n      \"id\": {}, \"name\": \"NVIDIA A100-SXM4-80GB\", \"totalGlobalMem\": 84990623744,\n      "
        "\"computeMajor\": 8, \"computeMinor\": 0,\n      \"maxThreadsPerBlock\": 1024, "
        "\"maxThreadsPerMultiprocessor\": 2048,\n      \"regsPerBlock\": 65536, \"warpSize\": 32,\n      "
        "\"sharedMemPerBlock\": 49152, \"numSms\": 108\n    }}{}\n",
        d, d + 1 < ranks_ ? "," : "");
  out += "  ],\n";
  if (ranks_ > 1)
    out += fmt::format("  \"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {}, \"world_size\": {}}},\n", rank_,
                       ranks_);
  out += "  \"record_shapes\": 0,\n";
  if (style_ == Style::kineto)
    out += fmt::format("  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": {},\n", kBaseNs);
  out += "  \"traceEvents\": [\n";
  if (compact_) {
    std::erase(out, '\n');
    std::string packed;
    for (std::size_t i = 0; i < out.size(); ++i)
      if (!(out[i] == ' ' && (i == 0 || out[i - 1] == ' ' || out[i - 1] == '{' || out[i - 1] == '['))) packed += out[i];
    out = std::move(packed);
  }
  sink_.write(out);
}

void TraceWriter::slice(const SliceEvent& e, Fn fn) {
  Sum& sum = written_.by_fn[static_cast<std::size_t>(fn)];
  ++sum.count;
  sum.total += as_written(e.duration);
  slice(e);
}

void TraceWriter::slice(const SliceEvent& e) {
  Sum& sum = written_.by_cat[static_cast<std::size_t>(e.cat)];
  ++sum.count;
  sum.total += as_written(e.duration);
  ++written_.slices;
  if (e.cat == Cat::memcpy) written_.memcpy_bytes += static_cast<std::uint64_t>(e.bytes);
  if (e.cat == Cat::memset) written_.memset_bytes += static_cast<std::uint64_t>(e.bytes);

  begin_event("X");
  text("cat", (style_ == Style::kineto_old ? kOld : kModern)[static_cast<std::size_t>(e.cat)]);
  text("name", e.name);
  process_and_thread(e.pid, e.tid);
  if (!compact_) {
    put(",\n    ");
    first_member_ = true;
  }
  time(e.begin);
  key("dur");
  put_us(e.duration);
  begin_args();
  if (e.external_id >= 0) number("External id", e.external_id);
  if (e.device >= 0) {
    if (e.cat == Cat::kernel) number("queued", 0);
    number("device", e.device);
    number("context", 1);
    number("stream", e.stream);
  }
  if (e.correlation != 0) number("correlation", e.correlation);
  if (e.cat == Cat::kernel) {
    number("registers per thread", e.registers);
    number("shared memory", e.shared_memory);
    triple("grid", e.grid);
    triple("block", e.block);
    if (e.graph_node != 0) number("graph node id", e.graph_node);
  }
  if (e.cat == Cat::memcpy || e.cat == Cat::memset) number("bytes", e.bytes);
  if (e.elements > 0) {
    text("Collective name", "allreduce");
    number("In msg nelems", e.elements);
    number("Out msg nelems", e.elements);
    number("Group size", e.group_size);
    text("dtype", "BFloat16");
    text("Process Group Name", "0");
    text("Process Group Description", "default_pg");
  }
  if (e.cat == Cat::runtime) number("cbid", 211);
  if (e.sequence >= 0) {
    number("Fwd thread id", e.forward_thread >= 0 ? e.forward_thread : 0);
    number("Sequence number", e.sequence);
  }
  if (e.python_id >= 0) {
    if (e.python_parent >= 0) number("Python parent id", e.python_parent);
    number("Python id", e.python_id);
  }
  end_args();
  end_event();
}

void TraceWriter::flow(bool begin, std::string_view kind, std::uint64_t id, std::int64_t pid, std::int64_t tid, Ns at) {
  ++(begin ? written_.flow_begins : written_.flow_ends);
  begin_event(begin ? "s" : "f");
  number("id", static_cast<std::int64_t>(id));
  process_and_thread(pid, tid);
  time(at);
  text("cat", kind);
  text("name", kind);
  if (!begin) text("bp", "e");
  end_event();
}

void TraceWriter::counter(std::string_view name, std::string_view value_key, std::int64_t value, std::int64_t pid,
                          Ns at) {
  ++written_.counters;
  begin_event("C");
  text("name", name);
  process_and_thread(pid, 0);
  time(at);
  begin_args();
  number(value_key, value);
  end_args();
  end_event();
}

void TraceWriter::instant(std::string_view name, std::int64_t pid, std::int64_t tid, Ns at) {
  ++written_.instants;
  begin_event("i");
  text("name", name);
  text("s", "g");
  process_and_thread(pid, tid);
  time(at);
  end_event();
}

void TraceWriter::process(std::int64_t pid, std::string_view name, std::string_view labels) {
  for (const auto& [event, member, value] :
       {std::array{std::string_view("process_name"), std::string_view("name"), name},
        std::array{std::string_view("process_labels"), std::string_view("labels"), labels}}) {
    ++written_.metadata;
    begin_event("M");
    text("name", event);
    process_and_thread(pid, 0);
    time(0);
    begin_args();
    text(member, value);
    end_args();
    end_event();
  }
}

void TraceWriter::thread(std::int64_t pid, std::int64_t tid, std::string_view name) {
  ++written_.metadata;
  begin_event("M");
  text("name", "thread_name");
  process_and_thread(pid, tid);
  time(0);
  begin_args();
  text("name", name);
  end_args();
  end_event();
}

Status TraceWriter::close(Ns begin, Ns end) {
  // The profiler's own span, on a process and thread that have no numbers.
  Sum& sum = written_.by_cat[static_cast<std::size_t>(Cat::trace)];
  ++sum.count;
  sum.total += as_written(end - begin);
  ++written_.slices;
  begin_event("X");
  text("cat", "Trace");
  text("name", "PyTorch Profiler (0)");
  text("pid", "Spans");
  text("tid", "PyTorch Profiler");
  time(begin);
  key("dur");
  put_us(end - begin);
  begin_args();
  number("Op count", 0);
  end_args();
  end_event();
  if (!compact_) sink_.write("\n");
  if (style_ == Style::legacy_array) {
    sink_.write("]\n");
  } else {
    sink_.write(compact_ ? "],\"traceName\":\"simulated\"}\n" : "  ],\n  \"traceName\": \"simulated\"\n}\n");
  }
  return sink_.close();
}

}  // namespace culprit::tracegen
