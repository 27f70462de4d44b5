#include "summary/stack_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <tsl/hopscotch_map.h>

#include "core/hash.h"
#include "core/saturating.h"
#include "core/units.h"
#include "model/table_rows.h"
#include "summary/function_stats.h"
#include "trace/code_name.h"

namespace culprit::summary {

namespace {

using model::ColumnType;
using model::StackTree;
using Node = StackTree::Node;

std::string_view last_part(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

class TreeMaker {
 public:
  TreeMaker(const Trace& trace, const StackQuery& query) : trace_(trace), query_(query) {
    matches_.resize(trace.strings.size(), kUnknown);
  }

  StackTree make() {
    for (std::size_t i = 0; i < trace_.stack_samples.size(); ++i) {
      const StackSample& sample = trace_.stack_samples[i];
      const bool wanted = sample.kind == query_.kind ||
                          (query_.kind == StackSample::Kind::on_cpu && sample.kind == StackSample::Kind::other);
      if (wanted) add(sample);
    }
    sum_up();
    return std::move(tree_);
  }

 private:
  enum Match : std::uint8_t { kUnknown, kNo, kYes };

  bool matches(StringId name) {
    std::uint8_t& known = matches_[name];
    if (known == kUnknown) known = matches_filter(trace_.strings[name], query_.filter) ? kYes : kNo;
    return known == kYes;
  }

  bool kept(const StackSample& sample) {
    if (query_.filter.empty()) return true;
    const Track& track = trace_.tracks[sample.track];
    if (matches(track.name) || matches(trace_.processes[track.process].name)) return true;
    for (std::uint32_t at = sample.frame; at != kNone; at = trace_.stack_frames[at].caller)
      if (matches(trace_.stack_frames[at].function)) return true;
    return false;
  }

  std::uint32_t child(std::uint32_t parent, StringId name, StringId module, bool kernel) {
    if (const auto file = file_of_unnamed(trace_.strings[name])) {
      const std::uint32_t node = plain_child(parent, fmt::format("[{}]", *file));
      tree_.nodes[node].module = trace_.strings[module];
      return node;
    }
    const auto key = std::tuple(parent, name, module, kernel);
    const auto [found, added] = children_.try_emplace(key, static_cast<std::uint32_t>(tree_.nodes.size()));
    if (added) {
      Node& node = tree_.nodes.emplace_back();
      node.parent = parent;
      node.name = trace_.strings[name];
      node.module = trace_.strings[module];
      node.kernel = kernel;
    }
    return found->second;
  }

  std::uint32_t plain_child(std::uint32_t parent, std::string_view name) {
    const auto [found, added] =
        plain_.try_emplace(std::pair(parent, std::string(name)), static_cast<std::uint32_t>(tree_.nodes.size()));
    if (added) {
      Node& node = tree_.nodes.emplace_back();
      node.parent = parent;
      node.name = name;
    }
    return found->second;
  }

  void add(const StackSample& sample) {
    if (sample.time > 0) tree_.shortest = tree_.shortest > 0 ? std::min(tree_.shortest, sample.time) : sample.time;
    if (!kept(sample)) {
      ++tree_.filtered;
      return;
    }
    const Track& track = trace_.tracks[sample.track];
    const auto [thread, added] = threads_.try_emplace(sample.track, 0);
    if (added) {
      const Process& process = trace_.processes[track.process];
      const auto named = [&](StringId name, std::string_view what, std::int64_t number) {
        return name != 0 ? std::string(trace_.strings[name]) : fmt::format("{} {}", what, number);
      };
      const std::uint32_t root = plain_child(StackTree::kRoot, named(process.name, "process", process.pid));
      thread.value() = plain_child(root, named(track.name, "thread", track.tid));
    }
    std::uint32_t at = thread->second;
    if (sample.frame == kNone) {
      at = plain_child(at, "[no stack]");
      ++tree_.without_stack;
    } else {
      path_.clear();
      for (std::uint32_t row = sample.frame; row != kNone; row = trace_.stack_frames[row].caller) path_.push_back(row);
      for (const std::uint32_t row : path_ | std::views::reverse) {
        const StackFrame& frame = trace_.stack_frames[row];
        at = child(at, frame.function, frame.module, frame.kernel);
      }
    }
    Node& node = tree_.nodes[at];
    ++node.samples;
    node.time = add_saturating(node.time, sample.time);
    tree_.timed = tree_.timed && sample.time > 0;
  }

  void sum_up() {
    for (std::uint32_t i = static_cast<std::uint32_t>(tree_.nodes.size()); i-- > 0;) {
      Node& node = tree_.nodes[i];
      node.total_samples += node.samples;
      node.total_time = add_saturating(node.total_time, node.time);
      if (i == StackTree::kRoot) break;
      Node& parent = tree_.nodes[node.parent];
      parent.total_samples += node.total_samples;
      parent.total_time = add_saturating(parent.total_time, node.total_time);
      parent.children.push_back(i);
    }
    for (Node& node : tree_.nodes)
      std::ranges::sort(node.children, {}, [&](std::uint32_t i) {
        const Node& c = tree_.nodes[i];
        return std::tuple(std::string_view(c.name), std::string_view(c.module), c.kernel, i);
      });
  }

  const Trace& trace_;
  const StackQuery& query_;
  StackTree tree_;
  std::map<std::tuple<std::uint32_t, StringId, StringId, bool>, std::uint32_t> children_;
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> plain_;
  tsl::hopscotch_map<TrackId, std::uint32_t, Hash> threads_;
  std::vector<std::uint8_t> matches_;
  std::vector<std::uint32_t> path_;
};

/// A name between semicolons, in one line.
std::string folded_name(const Node& node) {
  std::string name = node.name;
  for (char& c : name)
    if (c == ';' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = c == ';' ? ':' : ' ';
  return node.kernel ? name + "_[k]" : name;
}

struct FunctionSum {
  std::string_view name;
  std::string_view module;
  bool kernel = false;
  std::uint64_t self = 0;
  std::uint64_t total = 0;
  Ns self_time = 0;
  Ns total_time = 0;
};

using FunctionKey = std::tuple<std::string_view, std::string_view, bool>;

FunctionKey key_of(const Node& node) { return {node.name, node.module, node.kernel}; }

/// A process and a thread are no functions.
std::vector<bool> functions_of(const StackTree& tree) {
  std::vector<std::uint32_t> depth(tree.nodes.size());
  std::vector<bool> is_function(tree.nodes.size());
  for (std::size_t i = 1; i < tree.nodes.size(); ++i) {
    depth[i] = std::min(depth[tree.nodes[i].parent] + 1, 3U);
    is_function[i] = depth[i] == 3;
  }
  return is_function;
}

std::vector<FunctionSum> sums_of(const StackTree& tree) {
  const std::vector<bool> is_function = functions_of(tree);
  std::map<FunctionKey, FunctionSum> sums;
  // Walks down the tree with the functions that are open: of calls inside themselves only the outermost counts.
  std::map<FunctionKey, std::uint32_t> open;
  std::vector<std::pair<std::uint32_t, std::size_t>> path = {{StackTree::kRoot, 0}};
  while (!path.empty()) {
    auto& [at, next] = path.back();
    const Node& node = tree.nodes[at];
    if (next == 0 && is_function[at]) {
      FunctionSum& sum = sums[key_of(node)];
      sum.name = node.name;
      sum.module = node.module;
      sum.kernel = node.kernel;
      sum.self += node.samples;
      sum.self_time = add_saturating(sum.self_time, node.time);
      if (open[key_of(node)]++ == 0) {
        sum.total += node.total_samples;
        sum.total_time = add_saturating(sum.total_time, node.total_time);
      }
    }
    if (next < node.children.size()) {
      const std::uint32_t below = node.children[next++];
      path.emplace_back(below, 0);
      continue;
    }
    if (is_function[at]) --open[key_of(node)];
    path.pop_back();
  }
  std::vector<FunctionSum> rows;
  rows.reserve(sums.size());
  for (const auto& [key, sum] : sums) rows.push_back(sum);
  return rows;
}

}  // namespace

StackTree stack_tree(const Trace& trace, const StackQuery& query) { return TreeMaker(trace, query).make(); }

std::string folded_stacks(const StackTree& tree, bool microseconds) {
  std::map<std::string, std::uint64_t> lines;
  for (const Node& node : tree.nodes) {
    if (node.samples == 0) continue;
    std::vector<const Node*> path;
    for (const Node* at = &node; at != &tree.nodes.front(); at = &tree.nodes[at->parent]) path.push_back(at);
    std::string text;
    for (const Node* at : path | std::views::reverse) {
      if (!text.empty()) text += ';';
      text += folded_name(*at);
    }
    constexpr Ns kMicrosecond = 1000;
    if (microseconds)
      lines[text] += static_cast<std::uint64_t>(node.time / kMicrosecond);
    else if (tree.timed && tree.shortest > 0)
      lines[text] += static_cast<std::uint64_t>(add_saturating(node.time, tree.shortest / 2) / tree.shortest);
    else
      lines[text] += node.samples;
  }
  std::string text;
  for (const auto& [stack, count] : lines)
    if (count > 0) text += fmt::format("{} {}\n", stack, count);
  return text;
}

model::Table stack_table(const StackTree& tree, const StackTableOptions& options) {
  std::vector<FunctionSum> rows = sums_of(tree);
  const auto weight = [&](const FunctionSum& f) {
    const auto self = tree.timed ? static_cast<std::uint64_t>(f.self_time) : f.self;
    const auto total = tree.timed ? static_cast<std::uint64_t>(f.total_time) : f.total;
    return options.by_total ? std::pair(total, self) : std::pair(self, total);
  };
  std::ranges::stable_sort(rows, [&](const FunctionSum& a, const FunctionSum& b) {
    if (options.by_name || weight(a) == weight(b)) return (a.name < b.name) != (options.by_name && options.reverse);
    return (weight(a) > weight(b)) != options.reverse;
  });
  const Node& all = tree.nodes.front();
  const auto share = [&](std::uint64_t samples, Ns time) {
    return tree.timed ? model::share_cell(time, all.total_time)
                      : model::share_cell(static_cast<double>(samples), static_cast<Ns>(all.total_samples));
  };
  const auto timed = model::present_if(tree.timed);
  model::Table table = model::make_table<FunctionSum>(
      "", "stack_functions",
      {{{"Function", "function", ColumnType::name},
        [](const FunctionSum& f) { return std::string(f.name) + (f.kernel ? " [kernel]" : ""); }},
       {{"Self", "self_ns", ColumnType::time}, &FunctionSum::self_time, timed},
       {{"Share", "self_share", ColumnType::percent, 2},
        [&](const FunctionSum& f) { return share(f.self, f.self_time); }},
       {{"Total", "total_ns", ColumnType::time}, &FunctionSum::total_time, timed},
       {{"Share", "total_share", ColumnType::percent, 2},
        [&](const FunctionSum& f) { return share(f.total, f.total_time); }},
       {{"Samples", "self_samples", ColumnType::count}, &FunctionSum::self},
       {{"In total", "total_samples", ColumnType::count, 3, true}, &FunctionSum::total},
       {{"Module", "module", ColumnType::name, 3, true},
        [](const FunctionSum& f) { return model::text_cell(std::string(last_part(f.module))); },
        model::Presence::if_known}},
      rows, options.limit);
  if (table.rows.size() < rows.size())
    table.notes.push_back(
        fmt::format("{} more functions are not shown; --limit 0 shows all", format_count(rows.size() - options.limit)));
  return table;
}

}  // namespace culprit::summary
