#include "model/verdict.h"

namespace culprit::model {

void write_verdicts(JsonWriter& json, const std::vector<Verdict>& verdicts) {
  json.begin_array("verdicts");
  for (const Verdict& verdict : verdicts) {
    json.begin_object();
    json.member("cause", verdict.cause);
    json.member("detail", verdict.detail);
    json.member("scope", to_string(verdict.scope));
    json.member("where", verdict.where);
    json.member("side", verdict.side == 0 ? "baseline" : "candidate");
    json.member("state", to_string(verdict.state));
    json.member("impact_ns", verdict.impact_ns);
    json.member("share", verdict.share);
    json.member("work_ratio", verdict.work_ratio);
    json.member("confidence", verdict.confidence);
    json.member("evidence", verdict.evidence);
    json.member("against", verdict.against);
    json.member("next_step", verdict.next_step);
    json.end_object();
  }
  json.end_array();
}

}  // namespace culprit::model
