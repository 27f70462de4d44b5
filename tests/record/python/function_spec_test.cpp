#include "record/python/function_spec.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "record/python/ready_sets.h"

namespace culprit::record::python {
namespace {

TEST(FunctionSpec, ANameAloneIsTimed) {
  const auto spec = parse_function(" pkg.module:Class.function ");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->module, "pkg.module");
  EXPECT_EQ(spec->qualified, "Class.function");
  EXPECT_TRUE(spec->captures.empty());
  EXPECT_EQ(spec->text, "pkg.module:Class.function");
}

TEST(FunctionSpec, NumbersHaveKindPathAndName) {
  const auto spec = parse_function("m:outer.<locals>.f(a, n=len(b.c.d), sum(e), ones( f.g ))");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->qualified, "outer.<locals>.f");
  ASSERT_EQ(spec->captures.size(), 4u);
  EXPECT_EQ(spec->captures[0].path, "a");
  EXPECT_EQ(spec->captures[0].label, "a");
  EXPECT_EQ(spec->captures[1].kind, Capture::Kind::length);
  EXPECT_EQ(spec->captures[1].path, "b.c.d");
  EXPECT_EQ(spec->captures[1].label, "n");
  EXPECT_EQ(spec->captures[2].kind, Capture::Kind::sum);
  EXPECT_EQ(spec->captures[2].label, "sum(e)");
  EXPECT_EQ(spec->captures[3].kind, Capture::Kind::ones);
  EXPECT_EQ(spec->captures[3].path, "f.g");
}

TEST(FunctionSpec, WhatIsNoFunctionIsRefused) {
  for (const char* wrong : {"",
                            ":",
                            "a:",
                            ":b",
                            "a",
                            "a:b(",
                            "a:b)",
                            "a:1b",
                            "a b:c",
                            "a:b(c d)",
                            "a:b(c,)",
                            "a:b(len(c)",
                            "a:b(c.)",
                            "a:b(1=c)",
                            "a:b(c[].d)",
                            "a:b(len(c[].d))",
                            "a:b(sum(c[]))",
                            "a:b(sum(c[]d))",
                            "a:b(sum([].d))",
                            "a:b(sum(c[].d[].e))",
                            "a:b(a.b.c.d.e.f.g.h)",
                            "a:b(a,b,c,d,e,f,g,h,i)",
                            "a:b as ",
                            "a:b(c) as d when e",
                            "a:b says ",
                            "a:b(c) says {d}",
                            "a:b as d when e"}) {
    const auto spec = parse_function(wrong);
    ASSERT_FALSE(spec) << wrong;
    EXPECT_EQ(spec.error().kind, ErrorKind::usage) << wrong;
    EXPECT_FALSE(spec.error().remedy.empty());
  }
}

TEST(FunctionSpec, WhatIsMissingAtTheEndIsNamed) {
  for (const char* text : {"m:outer.<locals>.inner(n) as", "m:f(n) as ", "m:f as"}) {
    const auto spec = parse_function(text);
    ASSERT_FALSE(spec) << text;
    EXPECT_NE(spec.error().what.find("no name stands behind 'as'"), std::string::npos) << spec.error().what;
  }
  const auto says = parse_function("m:f(n) says");
  ASSERT_FALSE(says);
  EXPECT_NE(says.error().what.find("no name stands behind 'says'"), std::string::npos) << says.error().what;
  const auto requests = parse_function("m:f(n) requests ");
  ASSERT_FALSE(requests);
  EXPECT_NE(requests.error().what.find("stands behind 'requests'"), std::string::npos) << requests.error().what;
  const auto open = parse_function("m:f(n");
  ASSERT_FALSE(open);
  EXPECT_NE(open.error().what.find("the last ')' is missing"), std::string::npos) << open.error().what;
}

TEST(FunctionSpec, AStepIsNamedByItsNumbers) {
  const std::array<std::string_view, 3> names = {"mode", "batch", "tokens"};
  const std::array<std::optional<std::int64_t>, 3> numbers = {1, 4, 199};
  const std::string_view format = "step[{mode:1=EXTEND bs=<batch> toks=<tokens>,2=DECODE bs=<batch>}]";
  EXPECT_EQ(step_name(format, names, numbers), "step[EXTEND bs=4 toks=199]");
  EXPECT_EQ(step_name(format, names, std::array<std::optional<std::int64_t>, 3>{2, 4, 199}), "step[DECODE bs=4]");
  EXPECT_EQ(step_name(format, names, std::array<std::optional<std::int64_t>, 3>{7, 4, 199}), "step[7]");
  EXPECT_EQ(step_name(format, names, std::array<std::optional<std::int64_t>, 3>{}), "step[?]");
  EXPECT_EQ(step_name("{tokens-batch}/{batch} {other}", names, numbers), "195/4 ?");
  const std::string_view rough = "step[{mode:1=DECODE bs=<batch> ctx=<~tokens>}]";
  EXPECT_EQ(step_name(rough, names, numbers), "step[DECODE bs=4 ctx=215]");
  EXPECT_EQ(step_name(rough, names, std::array<std::optional<std::int64_t>, 3>{1, 4, 220}),
            "step[DECODE bs=4 ctx=215]");
  EXPECT_EQ(step_name(rough, names, std::array<std::optional<std::int64_t>, 3>{1, 4, 0}), "step[DECODE bs=4 ctx=0]");
  EXPECT_EQ(step_name(rough, names, std::array<std::optional<std::int64_t>, 3>{1, 4, {}}), "step[DECODE bs=4 ctx=?]");
  EXPECT_EQ(step_name("d({~tokens}) {~tokens-batch} {~other}", names, numbers), "d(215) 181 ?");
  EXPECT_EQ(step_name("{open", names, numbers), "");
  EXPECT_EQ(step_name("", names, numbers), "");
}

TEST(FunctionSpec, AListHasOneALine) {
  const auto list = parse_functions("# comment\n\n a:b \r\nc:d(e) as step {e}\n");
  ASSERT_TRUE(list);
  ASSERT_EQ(list->size(), 2u);
  EXPECT_EQ((*list)[0].text, "a:b");
  EXPECT_EQ((*list)[1].step, "step {e}");
  EXPECT_EQ((*list)[1].text, "c:d(e)");
  const auto when = parse_function("c:d(e) as step {e} when e");
  ASSERT_TRUE(when);
  EXPECT_EQ(when->step, "step {e}");
  EXPECT_EQ(when->step_when, "e");
  const auto says = parse_function("c:d(e) says bs={e} when e");
  ASSERT_TRUE(says);
  EXPECT_TRUE(says->says);
  EXPECT_FALSE(when->says);
  EXPECT_EQ(says->step, "bs={e}");
  EXPECT_EQ(says->step_when, "e");
  const auto both = parse_function("c:d(e) as step that says {e}");
  ASSERT_TRUE(both);
  EXPECT_FALSE(both->says);
  EXPECT_EQ(both->step, "step that says {e}");
  const auto wrong = parse_functions("a:b\nc\n");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().what.find("line 2"), std::string::npos);
}

TEST(FunctionSpec, TheAgentGetsWhatItNeeds) {
  const auto list = parse_functions("m:C.f(n=len(a.b), return.c)\n");
  ASSERT_TRUE(list);
  EXPECT_EQ(agent_config(*list, true),
            "gc\nm:C.f(n=len(a.b), return.c)\x1fm\x1f"
            "C.f\x1f"
            "1:a.b\x1f"
            "0:return.c\n");
  EXPECT_EQ(agent_config({}, false), "\n");
}

TEST(ReadySets, AreListsOfFunctionsAndEachHasItsVersions) {
  std::set<std::string_view> names;
  for (const ReadySet& set : ready_sets()) {
    names.insert(set.name);
    EXPECT_NE(set.text.find("Tried on "), std::string_view::npos) << set.name;
    const auto functions = parse_functions(set.text);
    ASSERT_TRUE(functions) << set.name << ": " << functions.error().what;
    EXPECT_FALSE(functions->empty());
    std::set<std::string> texts;
    for (const FunctionSpec& function : *functions) EXPECT_TRUE(texts.insert(function.text).second) << function.text;
  }
  EXPECT_EQ(names, (std::set<std::string_view>{"sglang", "torch", "transformers", "vllm"}));
}

}  // namespace
}  // namespace culprit::record::python
