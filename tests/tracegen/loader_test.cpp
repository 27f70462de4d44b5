// The reader of this project finds in a simulated trace exactly what the truth says is there.
#include "formats/io/input.h"
#include "formats/kineto/reader.h"
#include "run.h"

namespace culprit::tracegen {
namespace {

class LoaderAgainstTruth : public testing::TestWithParam<std::tuple<Workload, Style, bool, const char*>> {};

TEST_P(LoaderAgainstTruth, CountsAndSumsAgree) {
  const auto& [workload, style, compact, ending] = GetParam();
  const Folder folder;
  Options o;
  o.output = folder.file(std::string("run") + ending);
  o.workload = workload;
  o.style = style;
  o.compact = compact;
  o.steps = 12;
  o.layers = 3;
  o.python = true;
  o.counters = true;
  const auto generated = generate(o);
  ASSERT_TRUE(generated.ok());
  const Json truth = Json::parse(read_file(generated->truth)).at("ranks").at(0);

  auto input = formats::Input::open(o.output);
  ASSERT_TRUE(input.ok()) << to_string(input.error());
  const auto trace = formats::kineto::read(std::move(input.value()), {.workers = 2});
  ASSERT_TRUE(trace.ok()) << to_string(trace.error());
  EXPECT_EQ(trace->slices.size(), truth.at("slices"));
  EXPECT_EQ(trace->losses.total(Severity::data_loss), 0U);

  std::map<SliceClass, std::pair<std::uint64_t, std::int64_t>> classes;
  std::map<std::string, std::pair<std::uint64_t, std::int64_t>> names;
  for (std::size_t i = 0; i < trace->slices.size(); ++i) {
    const culprit::Slice& s = trace->slices[i];
    for (auto* sum : {&classes[trace->slice_class(s)], &names[std::string(trace->name(s))]}) {
      ++sum->first;
      sum->second += s.duration;
    }
  }
  const std::map<std::string, SliceClass> known = {
      {"kernel", SliceClass::kernel},   {"memcpy", SliceClass::memcpy}, {"memset", SliceClass::memset},
      {"runtime", SliceClass::runtime}, {"cpu_op", SliceClass::cpu_op}, {"annotation", SliceClass::annotation},
      {"python", SliceClass::python}};
  for (const auto& [name, slice_class] : known) {
    EXPECT_EQ(truth.at("categories").at(name).at("count"), classes[slice_class].first) << name;
    EXPECT_EQ(truth.at("categories").at(name).at("sum_ns"), classes[slice_class].second) << name;
  }
  for (const Json& n : truth.at("names")) {
    EXPECT_EQ(n.at("count"), names[n.at("name")].first) << n.at("name");
    EXPECT_EQ(n.at("sum_ns"), names[n.at("name")].second) << n.at("name");
  }
}

INSTANTIATE_TEST_SUITE_P(Dialects, LoaderAgainstTruth,
                         testing::Combine(testing::Values(Workload::serve, Workload::train),
                                          testing::Values(Style::kineto, Style::kineto_old, Style::legacy_array),
                                          testing::Bool(), testing::Values(".json", ".json.gz")));

}  // namespace
}  // namespace culprit::tracegen
