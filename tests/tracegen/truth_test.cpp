// The truth beside a trace is what is in the trace, in every dialect.
#include "run.h"
#include "tracegen/random.h"

namespace culprit::tracegen {
namespace {

struct Case {
  const char* name;
  Options options;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

Options small(Workload workload) {
  Options o;
  o.workload = workload;
  o.steps = 9;
  o.layers = 2;
  o.counters = true;
  return o;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](const char* name, Workload workload, auto&& change) {
    Options o = small(workload);
    change(o);
    all.push_back({name, o});
  };
  add("serve", Workload::serve, [](Options&) {});
  add("train", Workload::train, [](Options&) {});
  add("serve_graph_ranks", Workload::serve, [](Options& o) { o.graph = true, o.ranks = 3; });
  add("train_graph_ranks", Workload::train, [](Options& o) { o.graph = true, o.ranks = 2; });
  add("lost", Workload::serve, [](Options& o) { o.lost_ppm = 100'000, o.python = true; });
  add("sched", Workload::serve, [](Options& o) {
    o.sched = true, o.python = true, o.faults = {Fault::cpu_contention}, o.severity_ppm = 800'000;
  });
  add("accumulated", Workload::train, [](Options& o) { o.accumulate = 4, o.inputs = 3; });
  add("cpu_serve_ranks", Workload::serve, [](Options& o) { o.cpu = true, o.ranks = 2; });
  add("cpu_train_ranks", Workload::train, [](Options& o) { o.cpu = true, o.ranks = 2; });
  add("compact", Workload::train, [](Options& o) { o.compact = true, o.ranks = 2; });
  add("old", Workload::serve, [](Options& o) { o.style = Style::kineto_old, o.ranks = 2; });
  add("old_compact", Workload::train, [](Options& o) { o.style = Style::kineto_old, o.compact = true; });
  add("array", Workload::serve, [](Options& o) { o.style = Style::legacy_array; });
  add("array_compact", Workload::train, [](Options& o) { o.style = Style::legacy_array, o.compact = true; });
  add("no_markers", Workload::serve, [](Options& o) { o.markers = false; });
  return all;
}

std::string category_in_truth(const std::string& category) {
  const std::map<std::string, std::string> names = {{"kernel", "kernel"},
                                                    {"Kernel", "kernel"},
                                                    {"gpu_memcpy", "memcpy"},
                                                    {"Memcpy", "memcpy"},
                                                    {"gpu_memset", "memset"},
                                                    {"Memset", "memset"},
                                                    {"cuda_runtime", "runtime"},
                                                    {"Runtime", "runtime"},
                                                    {"cpu_op", "cpu_op"},
                                                    {"Operator", "cpu_op"},
                                                    {"user_annotation", "annotation"},
                                                    {"python_function", "python"},
                                                    {"sched", "sched"},
                                                    {"Trace", "trace"}};
  return names.at(category);
}

class Truth : public testing::TestWithParam<Case> {};

TEST_P(Truth, CountsAndSumsAreThoseOfTheTrace) {
  const SimulatedRun run = make_run(GetParam().options);
  ASSERT_EQ(run.trace.size(), GetParam().options.ranks);
  for (std::size_t r = 0; r < run.trace.size(); ++r) {
    const Json& truth = run.truth.at("ranks").at(r);
    std::map<std::string, std::pair<std::uint64_t, std::int64_t>> categories;
    std::map<std::string, std::pair<std::uint64_t, std::int64_t>> names;
    std::uint64_t bytes = 0;
    std::map<std::string, std::uint64_t> phases;
    for (const Json& e : events(run.trace[r])) {
      ++phases[e.at("ph")];
      if (e.at("ph") != "X") continue;
      for (auto* sums : {&categories[category_in_truth(e.at("cat"))], &names[e.at("name")]}) {
        ++sums->first;
        sums->second += to_ns(e.at("dur"));
      }
      if (category_in_truth(e.at("cat")) == "memcpy") bytes += e.at("args").at("bytes").get<std::uint64_t>();
    }
    EXPECT_EQ(truth.at("events"), events(run.trace[r]).size());
    EXPECT_EQ(truth.at("slices"), phases["X"]);
    EXPECT_EQ(truth.at("flow_begins"), phases["s"]);
    EXPECT_EQ(truth.at("flow_ends"), phases["f"]);
    EXPECT_EQ(truth.at("counters"), phases["C"]);
    EXPECT_EQ(truth.at("instants"), phases["i"]);
    EXPECT_EQ(truth.at("metadata"), phases["M"]);
    EXPECT_EQ(truth.at("memcpy_bytes"), bytes);
    EXPECT_EQ(truth.at("text_bytes"), run.text[r].size());
    for (const auto& [category, sum] : truth.at("categories").items()) {
      EXPECT_EQ(sum.at("count"), categories[category].first) << category;
      EXPECT_EQ(sum.at("sum_ns"), categories[category].second) << category;
    }
    for (const Json& n : truth.at("names")) {
      EXPECT_EQ(n.at("count"), names[n.at("name")].first) << n.at("name");
      EXPECT_EQ(n.at("sum_ns"), names[n.at("name")].second) << n.at("name");
    }
  }
}

TEST_P(Truth, StepsFollowEachOtherAndMarkersCoverThem) {
  const Options& o = GetParam().options;
  const SimulatedRun run = make_run(o);
  const std::int64_t base = o.style == Style::kineto ? 0 : run.truth.at("options").at("base_ns").get<std::int64_t>();
  for (std::size_t r = 0; r < run.trace.size(); ++r) {
    std::vector<Json> steps;
    for (const Json& s : run.truth.at("steps"))
      if (s.at("rank") == r) steps.push_back(s);
    ASSERT_EQ(steps.size(), o.steps);
    std::vector<std::int64_t> markers;
    for (const Slice& s : slices(run.trace[r]))
      if (s.name.starts_with("step[") || s.name.starts_with("ProfilerStep#")) markers.push_back(s.begin - base);
    if (o.markers && o.lost_ppm == 0) {
      ASSERT_EQ(markers.size(), steps.size());
      for (std::size_t i = 0; i < steps.size(); ++i)
        EXPECT_NEAR(static_cast<double>(markers[i] - steps[i].at("begin_ns").get<std::int64_t>()), 0, 500) << i;
    } else if (!o.markers) {
      EXPECT_TRUE(markers.empty());
    }
    if (o.style == Style::kineto_old) continue;  // rounds each begin
    for (std::size_t i = 1; i < steps.size(); ++i)
      EXPECT_EQ(steps[i].at("begin_ns"),
                steps[i - 1].at("begin_ns").get<std::int64_t>() + steps[i - 1].at("period_ns").get<std::int64_t>());
  }
}

INSTANTIATE_TEST_SUITE_P(Dialects, Truth, testing::ValuesIn(cases()),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(Determinism, TheSameSeedGivesTheSameBytes) {
  Options o = small(Workload::train);
  o.ranks = 2;
  const SimulatedRun a = make_run(o);
  EXPECT_EQ(a.text, make_run(o).text);
  EXPECT_EQ(make_run(o, ".json.gz").text, make_run(o, ".json.gz").text);
  o.seed = 2;
  EXPECT_NE(a.text, make_run(o).text);
}

TEST(Determinism, RandomNumbersAreThoseOfThePublishedGenerator) {
  Random random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317U);
  EXPECT_EQ(random.next(), 3203168211198807973U);
  EXPECT_EQ(random.next(), 9817491932198370423U);
}

TEST(Determinism, SpreadHasTheMeanAndDeviationThatWereAskedFor) {
  Random random(5);
  double sum = 0;
  double squares = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = static_cast<double>(random.spread(1'000'000, 50'000)) / 1e6 - 1;
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.001);
  EXPECT_NEAR(std::sqrt(squares / kDraws), 0.05, 0.001);
  EXPECT_EQ(random.spread(123, 0), 123);
}

TEST(Output, CompressedTextIsThePlainText) {
  const Options o = small(Workload::serve);
  EXPECT_EQ(gunzip(make_run(o, ".json.gz").text[0]), make_run(o).text[0]);
}

TEST(Output, LostEventsDoNotChangeTheRun) {
  Options o = small(Workload::serve);
  const SimulatedRun whole = make_run(o);
  o.lost_ppm = 200'000;
  const SimulatedRun holes = make_run(o);
  EXPECT_EQ(whole.truth.at("steps"), holes.truth.at("steps"));
  const std::uint64_t lost = holes.truth.at("ranks").at(0).at("lost");
  EXPECT_GT(lost, 0U);
  EXPECT_EQ(lost + holes.truth.at("ranks").at(0).at("slices").get<std::uint64_t>(),
            whole.truth.at("ranks").at(0).at("slices"));
}

TEST(Output, StopsAtTheFirstStepThatReachesTheSlices) {
  Options o = small(Workload::serve);
  o.slices = 1000;
  const SimulatedRun run = make_run(o);
  const std::uint64_t n = run.truth.at("ranks").at(0).at("slices");
  EXPECT_GE(n, 1000U);
  EXPECT_LT(n, 1200U);
}

TEST(Output, SayWhatIsWrongWithOptionsAndPaths) {
  Options o;
  const auto kind = [](const Options& options) {
    const auto result = generate(options);
    return result ? 0 : static_cast<int>(result.error().kind);
  };
  EXPECT_EQ(kind(o), 2);
  o.output = "/nonexistent-folder/x.json";
  EXPECT_EQ(kind(o), 4);
  o.output = "-";
  o.ranks = 2;
  EXPECT_EQ(kind(o), 2);
  const Folder folder;
  o.output = folder.file("x.json");
  o.fault_rank = 2;
  EXPECT_EQ(kind(o), 2);
  o = {};
  o.output = folder.file("x.json");
  o.steps = 0;
  EXPECT_EQ(kind(o), 2);
  o.steps = 1;
  o.severity_ppm = kMillion;
  EXPECT_EQ(kind(o), 2);
  if (std::filesystem::exists("/dev/full")) {
    o = {};
    o.output = "/dev/full";
    o.truth = folder.file("truth.json");
    EXPECT_EQ(kind(o), 4);
  }
  o = {};
  o.steps = 1;
  o.output = folder.file("once.json");
  EXPECT_EQ(kind(o), 0);
  EXPECT_EQ(kind(o), 2) << "it exists";
  o.replace = true;
  EXPECT_EQ(kind(o), 0);
}

TEST(Program, ExitCodesAndStandardOutput) {
  const std::string program = CULPRIT_BINARY_DIR "/culprit-tracegen";
  ASSERT_TRUE(std::filesystem::exists(program));
  const Folder folder;
  const auto run = [&](const std::string& arguments) {
    const int status = std::system((program + " " + arguments + " 2>" + folder.file("err")).c_str());
    return WEXITSTATUS(status);
  };
  EXPECT_EQ(run("--help >" + folder.file("help")), 0);
  EXPECT_NE(read_file(folder.file("help")).find("--severity"), std::string::npos);
  EXPECT_EQ(run(""), 2);
  EXPECT_EQ(run("-o x --fault flood"), 2);
  EXPECT_EQ(run("-o x --severity 7"), 2);
  EXPECT_EQ(run("-o /nonexistent-folder/x.json"), 4);
  EXPECT_EQ(run("-o - --steps 2 --layers 1 >" + folder.file("out.json")), 0);
  EXPECT_TRUE(Json::parse(read_file(folder.file("out.json"))).contains("traceEvents"));
}

}  // namespace
}  // namespace culprit::tracegen
