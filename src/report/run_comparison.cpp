#include "report/run_comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
constexpr std::size_t kMostFirstLines = 25;  ///< of outcome and causes
constexpr std::size_t kFewestBehind = 3;     ///< sentences of the first cause

std::string name_of(const RunComparison& comparison, std::size_t number) {
  const model::ComparedSide& side = comparison.sides[number];
  if (comparison.alternation) return comparison.alternation->sides[number];
  if (side.files.empty()) return "?";
  return side.files.size() == 1 ? side.files.front()
                                : fmt::format("{} and {} more", side.files.front(), side.files.size() - 1);
}

using Lines = std::vector<std::string>;

/// A sentence in lines that a terminal holds; all but the first are indented.
void append_wrapped(Lines& out, std::string_view sentence, std::string_view first = "") {
  const std::string indent = std::string(first) + "  ";
  const std::vector<std::string> lines = wrap(escape_terminal(sentence), kWidth - indent.size());
  for (std::size_t i = 0; i < lines.size(); ++i) out.push_back(fmt::format("{}{}", i == 0 ? first : indent, lines[i]));
}

/// One cause: what it is, and the sentences behind it, the last of which says what to do next.
struct CauseLines {
  Lines head;
  std::vector<Lines> behind;
};

/// Takes sentences away until the text is `too_long` no more, or as few are left; gives how many went.
template <class TooLong>
std::size_t leave_out(CauseLines& cause, std::size_t fewest, const TooLong& too_long) {
  std::size_t gone = 0;
  for (; cause.behind.size() > fewest && too_long(); ++gone)
    cause.behind.erase(cause.behind.end() - (cause.behind.size() > 1 ? 2 : 1));
  return gone;
}

/// What was left out of the first lines, in sentences.
struct LeftOut {
  std::size_t about_causes = 0;
  std::size_t others = 0;
};

std::string left_out_text(const LeftOut& gone) {
  const std::size_t all = gone.about_causes + gone.others;
  return fmt::format("{} more sentence{}{}: --format md, --json or -o report.html", all, all == 1 ? "" : "s",
                     gone.others == 0 ? " about causes" : "");
}

/// Outcome, causes and what surrounds them, in as many lines as are read at once. Where that is too little sentences
/// behind all causes but the first go, then those of the first, the last ones first; then what surrounds them, from the
/// end; then all causes but the first.
Lines first_lines(const RunComparison& comparison) {
  const OutcomeText outcome = outcome_text(comparison);
  Lines answer;
  for (const std::string& line : outcome.answer) append_wrapped(answer, line);
  std::vector<CauseLines> causes;
  for (const VerdictText& verdict : verdict_texts(comparison)) {
    CauseLines& cause = causes.emplace_back();
    append_wrapped(cause.head, verdict.head);
    for (const std::string& line : verdict.lines) append_wrapped(cause.behind.emplace_back(), line, "  ");
  }
  std::vector<Lines> details;
  for (const std::string& line : outcome.details) append_wrapped(details.emplace_back(), line);

  const auto count = [&] {
    std::size_t lines = answer.size();
    for (const Lines& detail : details) lines += detail.size();
    for (const CauseLines& cause : causes) {
      lines += cause.head.size();
      for (const Lines& sentence : cause.behind) lines += sentence.size();
    }
    return lines;
  };
  LeftOut gone;
  if (count() > kMostFirstLines) {
    const auto too_long = [&] { return count() + 1 > kMostFirstLines; };  // one says that there is more
    for (std::size_t i = causes.size(); i-- > 1;) gone.about_causes += leave_out(causes[i], 0, too_long);
    if (!causes.empty()) gone.about_causes += leave_out(causes[0], kFewestBehind, too_long);
    for (; !details.empty() && too_long(); ++gone.others) details.pop_back();
    for (; causes.size() > 1 && too_long(); ++gone.about_causes) causes.pop_back();
  }
  Lines all = std::move(answer);
  for (const CauseLines& cause : causes) {
    all.insert(all.end(), cause.head.begin(), cause.head.end());
    for (const Lines& sentence : cause.behind) all.insert(all.end(), sentence.begin(), sentence.end());
  }
  for (const Lines& detail : details) all.insert(all.end(), detail.begin(), detail.end());
  if (gone.about_causes + gone.others > 0) all.push_back(left_out_text(gone));
  return all;
}

}  // namespace

std::string comparison_terminal(const RunComparison& comparison, std::size_t most_rows, bool summary, bool wide) {
  std::string out = fmt::format("{}\n", fmt::join(first_lines(comparison), "\n"));
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
  Lines wrapped;
  for (const std::string& note : notes) append_wrapped(wrapped, "Note: " + note);
  for (const std::string& line : wrapped) out += line + "\n";
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
