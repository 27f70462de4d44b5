#include "report/verdict_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace culprit::report {

namespace {

using model::Verdict;

constexpr double kPercent = 100;

std::string head_of(const Verdict& verdict, bool other_side) {
  std::string text =
      other_side ? fmt::format("Besides, in the {}: {}", verdict.side == 0 ? "baseline" : "candidate", verdict.cause)
                 : fmt::format("Cause: {}", verdict.cause);
  if (!verdict.detail.empty()) text += fmt::format(" ({})", verdict.detail);
  if (!verdict.where.empty()) text += fmt::format(" in {}", verdict.where);
  if (verdict.state == model::VerdictState::latent) text += ", latent: the steps are not shown to be longer by it";
  if (std::isfinite(verdict.share))
    text += fmt::format(", {:.0f} % of what a step takes longer", verdict.share * kPercent);
  if (verdict.confidence > 0) text += fmt::format(", confidence {:.0f} %", verdict.confidence * kPercent);
  return text;
}

}  // namespace

std::vector<VerdictText> verdict_texts(const model::RunComparison& comparison) {
  std::vector<VerdictText> texts;
  for (const Verdict& verdict : comparison.verdicts) {
    VerdictText& text = texts.emplace_back();
    const bool other = verdict.side != comparison.verdicts.front().side ||
                       verdict.side != (comparison.outcome == model::Outcome::improvement ? 0U : 1U);
    text.head = head_of(verdict, other);
    text.lines = verdict.evidence;
    for (const std::string& against : verdict.against) text.lines.push_back("Against it: " + against);
    if (!verdict.next_step.empty()) text.lines.push_back("Next: " + verdict.next_step);
  }
  return texts;
}

}  // namespace culprit::report
