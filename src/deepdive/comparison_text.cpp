#include "deepdive/comparison_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/units.h"

namespace culprit::deepdive {

namespace {

constexpr std::size_t kMostUnscored = 5;
constexpr std::size_t kMostDamage = 3;

std::string anchor_list(const ComparisonSide& side, const NameStyle& style) {
  if (side.anchors.empty()) return "(none)";
  std::string list;
  for (const StringId anchor : side.anchors) list += (list.empty() ? "" : ", ") + style.name(anchor);
  return list;
}

std::string damage_note(const InputReport& input, const NameStyle& style) {
  std::string note = fmt::format("{}: {} of {} rows could not be used and {} cells are no number.",
                                 style.text(input.file), format_count(input.bad_rows),
                                 format_count(input.rows + input.bad_rows), format_count(input.bad_cells));
  for (std::size_t i = 0; i < std::min(kMostDamage, input.first.size()); ++i)
    note += fmt::format(" Line {}: {} ({}).", input.first[i].line, style.text(input.first[i].what),
                        style.text(input.first[i].remedy));
  return note;
}

bool has_damage(const InputReport& input) { return input.bad_rows > 0 || input.bad_cells > 0 || input.rows == 0; }

std::string unpaired_note(const Unpaired& entry, const NameStyle& style) {
  return entry.pid ? fmt::format("Not compared: process {} of {}: {}.", *entry.pid, style.text(entry.file),
                                 style.text(entry.why))
                   : fmt::format("Not compared: {}: {}.", style.text(entry.file), style.text(entry.why));
}

bool belongs_to(const std::string& file, const Comparison& comparison) {
  return file == comparison.sides[0].file || file == comparison.sides[1].file;
}

bool belongs_to_any(const std::string& file, const ComparisonSet& set) {
  return std::any_of(set.comparisons.begin(), set.comparisons.end(),
                     [&](const Comparison& c) { return belongs_to(file, c); });
}

}  // namespace

std::string with_thousands(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (!std::isfinite(value)) return text;
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::size_t first = text[0] == '-' ? 1 : 0;
  for (std::size_t i = point; i > first + 3;) text.insert(i -= 3, ",");
  return text;
}

std::string change_percent(double base, double candidate) {
  if (base == 0) return candidate == 0 ? "+0.00%" : (candidate > 0 ? "+inf%" : "-inf%");
  return fmt::format("{:+.2f}%", (candidate - base) / base * 100);
}

std::string table_number(double value, int decimals) {
  if (!std::isfinite(value)) return "";
  const double rounded = std::strtod(fmt::format("{:.{}f}", value, decimals).c_str(), nullptr);
  return fmt::format("{:g}", rounded == 0 ? 0.0 : rounded);
}

std::string comparison_title(const Comparison& comparison, const NameStyle& style) {
  const std::string which = style.text(comparison.identifier);
  const auto& [base, candidate] = comparison.sides;
  return comparison.pairing == Pairing::strict
             ? fmt::format("Strict Performance Comparison: {} (PID: {})", which, base.pid)
             : fmt::format("Cross Performance Comparison: {} (Normal PID:{} vs Abnormal PID:{})", which, base.pid,
                           candidate.pid);
}

std::vector<std::string> input_notes(const Comparison& comparison, const ComparisonSet& set, const NameStyle& style) {
  std::vector<std::string> notes;
  const auto& [base, candidate] = comparison.sides;
  if (base.rows_no_name + candidate.rows_no_name > 0)
    notes.push_back(fmt::format("Left out because the function has no name: {} rows of {}, {} of {}.",
                                format_count(base.rows_no_name), base.label, format_count(candidate.rows_no_name),
                                candidate.label));
  for (const Unpaired& entry : set.unpaired)
    if (belongs_to(entry.file, comparison)) notes.push_back(unpaired_note(entry, style));
  for (const InputReport& input : set.inputs)
    if (has_damage(input) && belongs_to(input.file, comparison)) notes.push_back(damage_note(input, style));
  return notes;
}

std::vector<std::string> comparison_notes(const Comparison& comparison, const ComparisonSet& set,
                                          const NameStyle& style) {
  std::vector<std::string> notes;
  const auto& [base, candidate] = comparison.sides;
  if (comparison.anchors_differ)
    notes.push_back(
        fmt::format("WARNING: the two sides have different anchors: {} delimits the cycles of {}, {} those of {}. "
                    "Their cycles are not the same work, so no difference below shows a cause.",
                    anchor_list(base, style), base.label, anchor_list(candidate, style), candidate.label));
  for (const ComparisonSide& side : comparison.sides)
    if (side.cycle_us.size() < 2)
      notes.push_back(
          fmt::format("WARNING: {} has {} cycle(s); spread and tests need more.", side.label, side.cycle_us.size()));
  if (base.rows_no_metric + candidate.rows_no_metric > 0) {
    std::string note = fmt::format(
        "Left out because no resource was measured while the function ran: {} of {} rows of {}, {} of {} "
        "rows of {}.",
        format_count(base.rows_no_metric), format_count(base.rows), base.label, format_count(candidate.rows_no_metric),
        format_count(candidate.rows), candidate.label);
    if (!comparison.unscored.empty()) {
      note += fmt::format(" {} function(s) are therefore in no row at all", comparison.unscored.size());
      for (std::size_t i = 0; i < std::min(kMostUnscored, comparison.unscored.size()); ++i) {
        const UnscoredFunction& entry = comparison.unscored[i];
        note += fmt::format("{} {} on {} (β {:.2f} to {:.2f} %)", i == 0 ? ":" : ",", style.name(entry.function),
                            style.name(entry.device), entry.beta[0], entry.beta[1]);
      }
      note += comparison.unscored.size() > kMostUnscored ? ", ..." : ".";
    }
    notes.push_back(note);
  }
  for (std::string& note : input_notes(comparison, set, style)) notes.push_back(std::move(note));
  return notes;
}

std::vector<std::string> set_notes(const ComparisonSet& set, const NameStyle& style) {
  std::vector<std::string> notes;
  for (const Unpaired& entry : set.unpaired)
    if (!belongs_to_any(entry.file, set)) notes.push_back(unpaired_note(entry, style));
  for (const InputReport& input : set.inputs)
    if (has_damage(input) && !belongs_to_any(input.file, set)) notes.push_back(damage_note(input, style));
  for (const std::string& note : set.notes) notes.push_back(style.text(note));
  return notes;
}

}  // namespace culprit::deepdive
