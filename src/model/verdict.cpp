#include "model/verdict.h"

#include <optional>
#include <string>
#include <utility>

namespace culprit::model {

namespace {

void write_scope(JsonWriter& json, const Verdict& verdict) {
  json.begin_object("scope", JsonForm::line);
  json.member("kind", to_string(verdict.scope));
  for (const auto& [scope, beside] :
       {std::pair(VerdictScope::host, std::string()), std::pair(VerdictScope::device, verdict.device),
        std::pair(VerdictScope::process, verdict.process), std::pair(VerdictScope::function, std::string())}) {
    const std::string& name = scope == verdict.scope ? verdict.where : beside;
    json.member(to_string(scope), name.empty() ? std::nullopt : std::optional(name));
  }
  json.member("rank", verdict.rank >= 0 ? std::optional(verdict.rank) : std::nullopt);
  json.end_object();
}

}  // namespace

void write_verdicts(JsonWriter& json, const std::vector<Verdict>& verdicts) {
  json.begin_array("verdicts");
  for (const Verdict& verdict : verdicts) {
    json.begin_object();
    json.member("cause", verdict.cause);
    json.member("detail", verdict.detail);
    write_scope(json, verdict);
    json.member("side", verdict.side == 0 ? "baseline" : "candidate");
    json.member("state", to_string(verdict.state));
    json.member("impact_ns", verdict.impact_ns);
    json.member("share", verdict.share);
    json.member("work_ratio", verdict.work_ratio);
    json.member("confidence", verdict.confidence);
    json.member("evidence", verdict.evidence);
    json.member("counter_evidence", verdict.against);
    json.member("next_step", verdict.next_step);
    json.end_object();
  }
  json.end_array();
}

}  // namespace culprit::model
