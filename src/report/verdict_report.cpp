#include "report/verdict_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/units.h"

namespace culprit::report {

namespace {

using model::Verdict;

std::string head_of(const Verdict& verdict, bool besides, std::string_view side, bool decided) {
  if (verdict.cause == "unknown") return "No cause was found";
  std::string text = besides             ? fmt::format("Besides, in the {}: {}", side, verdict.cause)
                     : verdict.side == 0 ? fmt::format("Cause, in the {}: {}", side, verdict.cause)
                                         : fmt::format("Cause: {}", verdict.cause);
  if (!verdict.detail.empty()) text += fmt::format(" ({})", verdict.detail);
  if (!verdict.where.empty()) text += fmt::format(" in {}", verdict.where);
  if (!verdict.process.empty()) text += fmt::format(" (process {})", verdict.process);
  if (verdict.state == model::VerdictState::latent)
    text += decided ? ", latent: the steps are not longer by it, as far as is seen"
                    : ", latent: it is not decided whether steps are longer by it";
  if (std::isfinite(verdict.share))
    text += fmt::format(", {:.0f} % of what a step takes longer", verdict.share * kPercent);
  return text + fmt::format(", confidence {:.0f} %", verdict.confidence * kPercent);
}

}  // namespace

VerdictText verdict_text(const Verdict& verdict) {
  VerdictText text{verdict.cause, verdict.evidence};
  for (const std::string& against : verdict.against) text.lines.push_back("Against it: " + against);
  if (!verdict.next_step.empty()) text.lines.push_back("Next: " + verdict.next_step);
  return text;
}

std::vector<VerdictText> verdict_texts(const model::RunComparison& comparison,
                                       const std::array<std::string_view, 2>& sides) {
  std::vector<VerdictText> texts;
  for (const Verdict& verdict : comparison.verdicts) {
    VerdictText& text = texts.emplace_back(verdict_text(verdict));
    text.head = head_of(verdict, verdict.side != comparison.verdicts.front().side, sides.at(verdict.side),
                        comparison.outcome != model::Outcome::inconclusive);
  }
  return texts;
}

}  // namespace culprit::report
