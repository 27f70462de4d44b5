#include "report/run_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/display_width.h"
#include "core/escape.h"
#include "report/rank_times.h"
#include "report/render.h"
#include "report/run_comparison_tables.h"
#include "report/verdict_report.h"
#include "report/waterfall.h"
#include "report/work_comparison.h"

namespace culprit::report {

namespace {

using model::RunComparison;

constexpr std::size_t kWidth = 80;
constexpr std::size_t kNameWidth = 60;
constexpr std::size_t kMostFacts = 10;
constexpr std::size_t kMostLines = 6;  ///< of a waterfall
constexpr std::size_t kMostRanks = 8;

std::string name_of(const RunComparison& comparison, std::size_t number) {
  const model::ComparedSide& side = comparison.sides[number];
  if (comparison.alternation) return comparison.alternation->sides[number];
  if (side.files.empty()) return "?";
  return side.files.size() == 1 ? side.files.front()
                                : fmt::format("{} and {} more", side.files.front(), side.files.size() - 1);
}

/// A sentence in lines that a terminal holds; all but the first are indented.
void append_wrapped(std::string& out, std::string_view sentence, std::string_view first = "") {
  const std::string indent = std::string(first) + "  ";
  const std::vector<std::string> lines = wrap(escape_terminal(sentence), kWidth - indent.size());
  for (std::size_t i = 0; i < lines.size(); ++i) out += fmt::format("{}{}\n", i == 0 ? first : indent, lines[i]);
}

}  // namespace

std::string comparison_terminal(const RunComparison& comparison, std::size_t most_rows, bool summary, bool wide) {
  std::string out;
  const OutcomeText outcome = outcome_text(comparison);
  for (const std::string& line : outcome.answer) append_wrapped(out, line);
  for (const VerdictText& verdict : verdict_texts(comparison)) {
    append_wrapped(out, verdict.head);
    for (const std::string& line : verdict.lines) append_wrapped(out, line, "  ");
  }
  for (const std::string& line : outcome.details) append_wrapped(out, line);
  TerminalOptions look{Look::plain, false, kNameWidth, kWidth, true};
  if (wide) look = {};
  if (const auto tables = waterfall_tables(comparison, kMostLines); !summary && !tables.empty())
    out += "\n" + render_terminal(tables, look);
  if (const auto tables = rank_time_tables(comparison, kMostRanks); !summary && !tables.empty())
    out += "\n" + render_terminal(tables, look);
  if (const auto tables = changed_functions(comparison, most_rows); !summary && !tables.empty())
    out += "\n" + render_terminal(tables, look);
  if (const auto tables = evidence_tables(comparison, kMostFacts); !summary && !tables.empty())
    out += "\n" + render_terminal(tables, look);
  const std::vector<std::string> notes = note_lines(comparison);
  if (!notes.empty()) out += "\n";
  for (const std::string& note : notes) append_wrapped(out, "Note: " + note);
  return out;
}

std::string comparison_markdown(const RunComparison& comparison) {
  std::string out = fmt::format("# {} against {}\n\n", escape_markdown(name_of(comparison, 0)),
                                escape_markdown(name_of(comparison, 1)));
  const OutcomeText outcome = outcome_text(comparison);
  for (const std::string& line : outcome.answer) out += "- " + escape_markdown(line) + "\n";
  for (const VerdictText& verdict : verdict_texts(comparison)) {
    out += "- " + escape_markdown(verdict.head) + "\n";
    for (const std::string& line : verdict.lines) out += "  - " + escape_markdown(line) + "\n";
  }
  for (const std::string& line : outcome.details) out += "- " + escape_markdown(line) + "\n";
  for (const auto& tables : {waterfall_tables(comparison, 0), rank_time_tables(comparison, 0),
                             changed_functions(comparison, 0), evidence_tables(comparison, 0)})
    if (!tables.empty()) out += "\n" + render_markdown(tables);
  const std::vector<std::string> notes = note_lines(comparison);
  if (!notes.empty()) out += "\n";
  for (const std::string& note : notes) out += "- Note: " + escape_markdown(note) + "\n";
  return out;
}

std::string comparison_csv(const RunComparison& comparison) {
  if (comparison.work) {
    std::vector<model::Table> tables = {work_outcome_table(comparison)};
    for (model::Table& table : evidence_tables(comparison, 0)) tables.push_back(std::move(table));
    return render_csv(tables);
  }
  const model::Table table = all_functions(comparison);
  return render_csv(std::span(&table, 1));
}

}  // namespace culprit::report
