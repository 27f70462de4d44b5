// The same events in another order, with other white space, cut elsewhere, are the same trace.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "formats/kineto/read_text.h"
#include "support/shared_data.h"

namespace culprit::formats::kineto {
namespace {

using Json = nlohmann::ordered_json;

/// Everything that a trace says, but for the order of its rows; slices by track in their order.
class Content {
 public:
  explicit Content(const Trace& trace) : t_(trace), metrics_(trace.slices.size()) {
    for (std::size_t m = 0; m < t_.metrics.size(); ++m) metrics_[t_.metrics[m].slice].push_back(t_.metrics[m]);
    add("clock {} base {}", t_.clock, t_.base_ns);
    for (const Process& p : t_.processes)
      add("process {} {} {} {} {}", p.pid, text(p.text), text(p.host), text(p.name), text(p.labels));
    for (TrackId i = 0; i < t_.tracks.size(); ++i) add("track {} {}", track(i), t_.tracks[i].slices);
    for (const Category& c : t_.categories) add("category {} {}", c.name, to_string(c.slice_class));
    for (const SliceIndex i : order_slices(t_).order) add("{}", slice(i));
    for (const CounterSeries& c : t_.counters)
      for (const CounterSample& s : c.samples) add("counter {} {} {} {}", text(c.name), track(c.track), s.at, s.value);
    std::multiset<std::string> others;
    for (std::size_t i = 0; i < t_.instants.size(); ++i)
      others.insert(
          fmt::format("instant {} {} {}", text(t_.instants[i].name), t_.instants[i].at, track(t_.instants[i].track)));
    for (const Flow& f : t_.flows)
      others.insert(fmt::format("flow {}: {} -> {}", static_cast<int>(f.kind), slice(f.from), slice(f.to)));
    for (StringId i = 0; i < t_.strings.size(); ++i) others.insert(fmt::format("name {}", text(i)));
    for (std::size_t i = 0; i < Losses::kReasons; ++i)
      if (const auto reason = static_cast<LossReason>(i); t_.losses[reason] != 0)
        others.insert(fmt::format("{}: {}", info(reason).name, t_.losses[reason]));
    lines_.insert(lines_.end(), others.begin(), others.end());
    add("{} events, host {}, rank {} of {}", t_.ranks[0].events, t_.ranks[0].host, t_.ranks[0].rank,
        t_.ranks[0].world_size);
  }
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

 private:
  template <class... Parts>
  void add(fmt::format_string<const Parts&...> format, const Parts&... parts) {
    lines_.push_back(fmt::format(format, parts...));
  }
  [[nodiscard]] std::string_view text(StringId id) const { return t_.strings[id]; }
  [[nodiscard]] std::string track(TrackId id) const {
    if (id == kNone) return "none";
    const Track& k = t_.tracks[id];
    return fmt::format("{}/{}/{}/{}/{}/{}", t_.processes[k.process].pid, k.tid, text(k.name), static_cast<int>(k.kind),
                       k.device, k.stream);
  }
  [[nodiscard]] std::string span(SliceIndex i) const {
    const Slice& s = t_.slices[i];
    return fmt::format("{} {}+{} {} {} {}", t_.name(s), s.begin, s.duration, track(s.track),
                       t_.categories[s.category].name, s.correlation);
  }
  [[nodiscard]] std::string slice(SliceIndex i) const {
    const Slice& s = t_.slices[i];
    std::string line = span(i);
    if (s.gpu != kNone) {
      const GpuSlice& g = t_.gpu[s.gpu];
      EXPECT_EQ(g.slice, i);
      line += fmt::format(" gpu {} {} {} {} {} {} {:d} {:d} {:d}", g.device, g.stream, g.context, g.bytes, g.registers,
                          g.shared_memory, g.grid[0], g.grid[2], g.block[1]);
      if (g.launcher != kNone) line += " launched by " + span(g.launcher);
    }
    if (s.extra != kNone) {
      const SliceExtra& e = t_.extras[s.extra];
      line += fmt::format(" extra {} {} {} {}", e.sequence, e.elements, text(e.collective), text(e.group));
    }
    for (const StreamWait& w : t_.stream_waits)
      if (w.slice == i)
        line += fmt::format(" {}:{} waits for {}:{} of {}", w.device, w.stream, w.event_device, w.event_stream,
                            w.recorded_by);
    for (const SliceMetric& m : metrics_[i]) line += fmt::format(" {}={}", text(m.name), m.value);
    return line;
  }

  const Trace& t_;
  std::vector<std::vector<SliceMetric>> metrics_;  // by slice
  std::vector<std::string> lines_;
};

std::vector<std::string> content(const std::string& text, unsigned workers = 2,
                                 std::size_t piece_bytes = ReadOptions{}.piece_bytes) {
  const auto trace = test::read_json(text, workers, piece_bytes);
  EXPECT_TRUE(trace) << (trace ? "" : to_string(trace.error()));
  return trace ? Content(*trace).lines() : std::vector<std::string>();
}

Json members_shuffled(const Json& value, std::mt19937& random) {
  if (value.is_array()) {
    Json out = Json::array();
    for (const Json& item : value) out.push_back(item);
    return out;
  }
  if (!value.is_object()) return value;
  std::vector<std::string> keys;
  for (const auto& [key, inside] : value.items()) keys.push_back(key);
  std::ranges::shuffle(keys, random);
  Json out = Json::object();
  for (const std::string& key : keys) out[key] = members_shuffled(value[key], random);
  return out;
}

Json shuffled(const Json& trace, unsigned seed) {
  std::mt19937 random(seed);
  Json out = trace;
  Json& events = out.is_array() ? out : out["traceEvents"];
  std::vector<Json> list(events.begin(), events.end());
  std::ranges::shuffle(list, random);
  events = Json::array();
  for (const Json& event : list) events.push_back(members_shuffled(event, random));
  return out.is_array() ? out : members_shuffled(out, random);
}

/// Equal lines, or the first difference.
void expect_equal(const std::vector<std::string>& one, const std::vector<std::string>& other) {
  const auto [a, b] = std::ranges::mismatch(one, other);
  if (a == one.end() && b == other.end()) return;
  ADD_FAILURE() << (a == one.end() ? "nothing" : *a) << "\n  instead of\n" << (b == other.end() ? "nothing" : *b);
}

void expect_order_does_not_matter(const Json& trace, unsigned orders) {
  const auto wanted = content(trace.dump());
  ASSERT_GT(wanted.size(), 5U);
  for (unsigned seed = 0; seed < orders; ++seed) expect_equal(content(shuffled(trace, seed).dump()), wanted);
  // White space, and cuts at other places.
  expect_equal(content(trace.dump(3)), wanted);
  for (const std::size_t piece : {333U, 5000U}) expect_equal(content(trace.dump(1), 3, piece), wanted);
}

Json event(std::string_view text) { return Json::parse(text); }

/// Every kind of event, with spans that are alike and arrows of all kinds.
Json every_event() {
  Json events = Json::array();
  for (int step = 0; step < 30; ++step) {
    const int at = 1000 * step;
    const int id = 10 * step + 1;
    const auto add = [&](std::string_view pattern) {
      std::string text(pattern);
      for (const auto& [word, number] : {std::pair("$0", at), {"$1", at + 100}, {"$2", at + 200}, {"$i", id}})
        for (std::size_t p = 0; (p = text.find(word)) != std::string::npos;) text.replace(p, 2, std::to_string(number));
      events.push_back(event(text));
    };
    add(R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#$i","pid":1,"tid":1,"ts":$0,"dur":900,"args":{"External id":$i}})");
    add(R"({"ph":"X","cat":"python_function","name":"train.py: step","pid":1,"tid":1,"ts":$0,"dur":900,"args":{"Python id":$i}})");
    add(R"({"ph":"X","cat":"cpu_op","name":"aten::item","pid":1,"tid":1,"ts":$0,"dur":50,"args":{"External id":$i,"Sequence number":$i}})");
    add(R"({"ph":"X","cat":"cpu_op","name":"aten::_local_scalar_dense","pid":1,"tid":1,"ts":$0,"dur":50,"args":{"External id":$1}})");
    add(R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":$0,"dur":50,"args":{"correlation":$i,"External id":$i}})");
    add(R"({"ph":"s","cat":"ac2g","name":"ac2g","id":$i,"pid":1,"tid":1,"ts":$0})");
    add(R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":$1,"dur":60,"args":{"correlation":$i,"device":0,"stream":7,"bytes":-1,"grid":[1,2,3],"est. achieved occupancy %":30}})");
    add(R"({"ph":"f","bp":"e","cat":"ac2g","name":"ac2g","id":$i,"pid":0,"tid":7,"ts":$1})");
    add(R"({"ph":"X","cat":"cuda_runtime","name":"launch without arrow","pid":1,"tid":1,"ts":$2,"dur":5,"args":{"correlation":$1}})");
    add(R"({"ph":"f","cat":"ac2g","name":"ac2g","id":$2,"pid":0,"tid":7,"ts":$1})");
    add(R"({"ph":"s","cat":"fwdbwd","name":"fwdbwd","id":$i,"pid":1,"tid":1,"ts":$0})");
    add(R"({"ph":"X","cat":"cpu_op","name":"Backward","pid":1,"tid":2,"ts":$2,"dur":50,"args":{"External id":$2}})");
    add(R"({"ph":"f","cat":"fwdbwd","name":"fwdbwd","id":$i,"pid":1,"tid":2,"ts":$2})");
    add(R"({"ph":"X","cat":"cuda_profiler_range","name":"k","pid":2,"tid":0,"ts":$1,"dur":1,"args":{"a":1,"b\"c":2}})");
    for (const char* call : {"$1", "$0"})
      add(fmt::format(
          R"({{"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":0,"tid":7,"ts":$0,"dur":1,"args":{{"correlation":5{0},"wait_on_stream":20,"wait_on_cuda_event_record_corr_id":6{0}}}}})",
          call));
    add(R"({"ph":"C","name":"power","pid":0,"ts":$0,"args":{"gpu":$i,"memory":"5"}})");
    add(R"({"ph":"i","name":"[memory]","pid":1,"tid":1,"ts":$0,"s":"t","args":{"Bytes":1,"Device Type":0,"Total Allocated":$0}})");
    add(R"({"ph":"B","cat":"load","name":"load","pid":1,"tid":3,"ts":$0})");
    add(R"({"ph":"E","cat":"load","name":"load","pid":1,"tid":3,"ts":$1})");
    add(R"({"ph":"B","cat":"load","name":"load","pid":1,"tid":3,"ts":$1})");
    add(R"({"ph":"E","cat":"load","name":"load","pid":1,"tid":3,"ts":$2})");
    add(R"({"ph":"b","cat":"request","name":"r","id":"0x$i","pid":1,"tid":1,"ts":$0})");
    add(R"({"ph":"e","cat":"request","name":"r","id":"0x$i","pid":1,"tid":1,"ts":$2})");
    add(R"({"ph":"Q","name":"what","ts":$0})");
  }
  for (const char* text :
       {R"~({"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"python"}})~",
        R"~({"ph":"M","name":"process_labels","pid":1,"tid":0,"args":{"labels":"CPU"}})~",
        R"~({"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"thread 1 (python3)"}})~",
        R"~({"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"thread 1 (pt_main)"}})~",
        R"~({"ph":"X","name":"other host","pid":"node(4)","tid":"worker","ts":5,"dur":1,"args":{"hostname":"z"}})~",
        R"~({"ph":"X","name":"host","pid":5,"tid":5,"ts":5,"dur":1,"args":{"hostname":"a"}})~"})
    events.push_back(event(text));
  return events;
}

TEST(Shuffle, EveryKindOfEvent) {
  expect_order_does_not_matter(every_event(), 6);
  expect_order_does_not_matter(Json{{"schemaVersion", 1},
                                    {"distributedInfo", {{"rank", 3}, {"world_size", 8}}},
                                    {"traceEvents", every_event()},
                                    {"baseTimeNanoseconds", 1'700'000'000'000'000'000}},
                               3);
}

TEST(Shuffle, LinksAreThere) {
  const Trace t = test::trace_of(shuffled(every_event(), 1).dump());
  std::size_t launched = 0;
  for (std::size_t g = 0; g < t.gpu.size(); ++g) launched += t.gpu[g].launcher != kNone;
  EXPECT_EQ(launched, 30U);
  ASSERT_EQ(t.stream_waits.size(), 60U);
  for (const StreamWait& wait : t.stream_waits)  // 5… and 6… with the same end
    EXPECT_EQ(std::to_string(wait.recorded_by).substr(1), std::to_string(t.slices[wait.slice].correlation).substr(1));
  EXPECT_TRUE(std::ranges::is_sorted(t.stream_waits, {}, &StreamWait::slice));
  EXPECT_EQ(std::ranges::count(t.flows, FlowKind::forward_backward, &Flow::kind), 30);
}

TEST(Shuffle, RealTraces) {
  CULPRIT_NEEDS_SHARED("corpus/kineto/hta_small");
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(test::shared("corpus/kineto/hta_small"))) {
    if (!entry.is_regular_file()) continue;
    SCOPED_TRACE(entry.path().string());
    auto input = Input::open(entry.path().string());
    ASSERT_TRUE(input);
    const auto text = read_all(*input);
    ASSERT_TRUE(text);
    expect_order_does_not_matter(Json::parse(*text), 1);
    ++files;
  }
  EXPECT_GE(files, 7);
}

}  // namespace
}  // namespace culprit::formats::kineto
