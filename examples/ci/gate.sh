#!/bin/sh
# A gate for any CI: compares the trace of this build with the one that was kept of the last good build.
#
#     examples/ci/gate.sh KEPT.json.gz NEW.json.gz [REPORT.md]
#
# Ends with 1 when the steps became slower, with 5 when the two cannot be compared, else with 0, and then keeps the new
# trace: "not decided" passes with a warning. Set CULPRIT_GATE=inconclusive for a gate that lets nothing undecided pass.
# Without a kept trace the new one is kept, and passes.
set -eu
kept=$1 new=$2 report=${3:-culprit.md}
if [ ! -e "$kept" ]; then
  cp -- "$new" "$kept"
  echo "no trace was kept yet: '$new' is the baseline from now on"
  exit 0
fi
rm -f -- "$report"
status=0
culprit diff "$kept" "$new" -o "$report" --fail-on "${CULPRIT_GATE:-regression}" || status=$?
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -e "$report" ]; then cat -- "$report" >> "$GITHUB_STEP_SUMMARY"; fi
if [ "$status" = 0 ]; then cp -- "$new" "$kept"; fi
exit "$status"
