#include "report/flame_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace culprit::report {
namespace {

using model::StackTree;
using testing::HasSubstr;
using testing::Not;

/// A chain of functions below the root, all of the same weight.
StackTree chain(const std::vector<std::string>& names, std::uint64_t samples = 4) {
  StackTree tree;
  for (const std::string& name : names) {
    const auto parent = static_cast<std::uint32_t>(tree.nodes.size() - 1);
    tree.nodes[parent].children = {parent + 1};
    StackTree::Node& node = tree.nodes.emplace_back();
    node.parent = parent;
    node.name = name;
  }
  for (StackTree::Node& node : tree.nodes) {
    node.total_samples = samples;
    node.total_time = static_cast<Ns>(samples) * 10'000'000;
  }
  return tree;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(FlameGraph, ABoxForEachFunctionAndOneForAll) {
  const std::string svg = flame_graph(chain({"prog", "main", "work"}), {.title = "On CPU"});
  EXPECT_EQ(count_of(svg, "<title>"), 4U);
  EXPECT_THAT(svg, HasSubstr("<title>work (40.000ms, 4 samples, 100.00%)</title>"));
  EXPECT_THAT(svg, HasSubstr(">On CPU<"));
}

TEST(FlameGraph, HostileNamesStayText) {
  const std::string svg =
      flame_graph(chain({"<script>alert(1)</script>", "a\"b'&c", "]]>", std::string("x\0\x1b[31my", 8)}),
                  {.title = "</text><script>"});
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr("\x1b")));
  EXPECT_EQ(svg.find('\0'), std::string::npos);
  EXPECT_THAT(svg, HasSubstr("a&quot;b"));
}

TEST(FlameGraph, AsksForNothingElse) {
  const std::string svg = flame_graph(chain({"http://evil.example/x"}), {.title = "t"});
  EXPECT_THAT(svg, Not(HasSubstr("href")));
  EXPECT_THAT(svg, Not(HasSubstr("url(")));
  EXPECT_EQ(count_of(svg, "http://www.w3.org"), 1U);
}

TEST(FlameGraph, WidthsAreShares) {
  StackTree tree = chain({"a"});
  tree.nodes[0].children = {1, 2};
  tree.nodes.emplace_back();
  tree.nodes[2].name = "b";
  for (const int i : {1, 2}) tree.nodes[static_cast<std::size_t>(i)].total_time = i == 1 ? 30 : 10;
  tree.nodes[0].total_time = 40;
  const std::string svg = flame_graph(tree, {.title = "t", .width = 1020});
  EXPECT_THAT(svg, HasSubstr("75.00%"));
  EXPECT_THAT(svg, HasSubstr("width=\"749.70\""));
  EXPECT_THAT(svg, HasSubstr("x=\"760.00\""));
}

TEST(FlameGraph, WhatIsTooNarrowOrTooDeepIsLeftOut) {
  StackTree tree = chain({"a"}, 1'000'000);
  tree.nodes[0].children = {1, 2};
  tree.nodes.emplace_back();
  tree.nodes[2].name = "tiny";
  tree.nodes[2].total_time = 10;
  EXPECT_THAT(flame_graph(tree, {.title = "t"}), Not(HasSubstr("tiny")));
  const std::string deep = flame_graph(chain(std::vector<std::string>(2000, "f")), {.title = "t"});
  EXPECT_EQ(count_of(deep, "<title>"), 512U);
  EXPECT_THAT(deep, HasSubstr("deeper than 512"));
}

TEST(FlameGraph, NoSamplesAreSaid) { EXPECT_THAT(flame_graph(StackTree(), {.title = "t"}), HasSubstr("no samples")); }

TEST(FlameGraph, ALongNameIsNotCutInsideACharacter) {
  std::string name;
  for (int i = 0; i < 400; ++i) name += "ä";
  const std::string svg = flame_graph(chain({name}), {.title = "t"});
  for (std::size_t i = 1; i < svg.size(); ++i) {
    const auto c = static_cast<unsigned char>(svg[i]);
    const auto before = static_cast<unsigned char>(svg[i - 1]);
    EXPECT_EQ((c & 0xc0U) == 0x80, before == 0xc3) << i;
  }
}

}  // namespace
}  // namespace culprit::report
