#include "report/flame_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "core/escape.h"
#include "core/hash.h"
#include "core/units.h"
#include "core/utf8.h"

namespace culprit::report {

namespace {

using model::StackTree;

constexpr double kNarrowest = 0.2;  ///< pixels
constexpr unsigned kRow = 16;
constexpr unsigned kMargin = 10;
constexpr unsigned kHead = 34;
constexpr double kCharacter = 7.0;  ///< pixels
constexpr std::size_t kMostRows = 512;
constexpr std::size_t kMostTitle = 400;

struct Box {
  std::uint32_t node = 0;
  std::size_t row = 0;
  double x = 0;
  double width = 0;
};

double weight(const StackTree& tree, const StackTree::Node& node) {
  return tree.timed ? static_cast<double>(node.total_time) : static_cast<double>(node.total_samples);
}

/// Boxes from the root on; `deeper` counts those that are too deep to be drawn.
std::vector<Box> boxes_of(const StackTree& tree, double width, std::size_t& deeper) {
  const double all = weight(tree, tree.nodes.front());
  std::vector<Box> boxes;
  if (all <= 0) return boxes;
  boxes.push_back({StackTree::kRoot, 0, 0, width});
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const Box box = boxes[i];
    double x = box.x;
    for (const std::uint32_t child : tree.nodes[box.node].children) {
      const double own = width * weight(tree, tree.nodes[child]) / all;
      if (own >= kNarrowest && box.row + 1 < kMostRows) boxes.push_back({child, box.row + 1, x, own});
      if (box.row + 1 >= kMostRows) ++deeper;
      x += own;
    }
  }
  return boxes;
}

/// Warm colours for programs, cold ones for the kernel; one name has one colour.
std::string color_of(const StackTree::Node& node) {
  const auto hash = hash_of(node.name);
  const auto part = [hash](unsigned shift, unsigned range) { return static_cast<unsigned>((hash >> shift) % range); };
  if (node.kernel) return fmt::format("rgb({},{},{})", 90 + part(0, 50), 150 + part(8, 60), 210 + part(16, 40));
  return fmt::format("rgb({},{},{})", 205 + part(0, 50), 90 + part(8, 130), 40 + part(16, 40));
}

/// At most `most` bytes, not cut inside a character.
std::string_view beginning(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0U) == 0x80) --most;
  return text.substr(0, most);
}

/// For text and attributes of XML, which holds no control characters at all.
std::string escaped(std::string_view text) { return escape_html(escape_terminal(text)); }

std::string value_of(const StackTree& tree, const StackTree::Node& node) {
  const std::string samples =
      fmt::format("{} {}", format_count(node.total_samples), node.total_samples == 1 ? "sample" : "samples");
  return tree.timed ? fmt::format("{}, {}", format_duration(node.total_time), samples) : samples;
}

}  // namespace

std::string flame_graph(const StackTree& tree, const FlameGraphOptions& options) {
  const double width = options.width - 2 * kMargin;
  std::size_t deeper = 0;
  const std::vector<Box> boxes = boxes_of(tree, width, deeper);
  std::size_t rows = 1;
  for (const Box& box : boxes) rows = std::max(rows, box.row + 1);
  const std::size_t height = kHead + rows * kRow + kMargin;
  const double all = std::max(weight(tree, tree.nodes.front()), 1.0);

  std::string svg = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"monospace\" font-size=\"11\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fffaf0\"/>\n"
      "<text x=\"{2}\" y=\"22\" font-size=\"15\">{3}</text>\n",
      options.width, height, kMargin, escaped(beginning(options.title, kMostTitle)));
  const auto out = std::back_inserter(svg);
  for (const Box& box : boxes) {
    const StackTree::Node& node = tree.nodes[box.node];
    const std::string name = box.node == StackTree::kRoot
                                 ? "all"
                                 : std::string(beginning(node.name, kMostTitle)) + (node.kernel ? " [kernel]" : "");
    const double share = 100 * weight(tree, node) / all;
    const std::size_t y = kHead + (rows - 1 - box.row) * kRow;
    fmt::format_to(out, "<g><title>{} ({}, {:.2f}%)</title>", escaped(name), value_of(tree, node), share);
    fmt::format_to(out, "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" rx=\"1\"/>",
                   kMargin + box.x, y, std::max(box.width - 0.3, kNarrowest), kRow - 1, color_of(node));
    const auto letters = static_cast<std::size_t>(std::max(0.0, (box.width - 6) / kCharacter));
    if (letters >= 3) {
      const bool cut = name.size() > letters;
      const std::string_view shown = beginning(name, cut ? letters - 2 : letters);
      fmt::format_to(out, "<text x=\"{:.2f}\" y=\"{}\">{}{}</text>", kMargin + box.x + 3, y + 11, escaped(shown),
                     cut ? ".." : "");
    }
    svg += "</g>\n";
  }
  if (boxes.empty()) fmt::format_to(out, "<text x=\"{}\" y=\"{}\">no samples</text>\n", kMargin, kHead + 11);
  if (deeper > 0)
    fmt::format_to(out, "<text x=\"{}\" y=\"{}\" font-size=\"9\">stacks deeper than {} are cut</text>\n", kMargin,
                   height - 1, kMostRows);
  svg += "</svg>\n";
  return svg;
}

}  // namespace culprit::report
