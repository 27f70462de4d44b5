#!/bin/sh
# A gate for any CI: compares the trace of this build with the one that was kept of the last good build.
#
#     examples/ci/gate.sh KEPT.json.gz NEW.json.gz [REPORT.md]
#
# Ends with 1 when the steps became slower, with 5 when the two cannot be compared, else with 0: "not decided" passes with
# a warning. Set CULPRIT_GATE=inconclusive for a gate that lets nothing undecided pass. Without a kept trace the new one is
# kept, and passes.
set -eu
kept=$1 new=$2 report=${3:-culprit.md}
if [ ! -e "$kept" ]; then
  cp -- "$new" "$kept"
  echo "no trace was kept yet: '$new' is the baseline from now on"
  exit 0
fi
status=0
culprit diff "$kept" "$new" -o "$report" --force --fail-on "${CULPRIT_GATE:-regression}" || status=$?
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat -- "$report" >> "$GITHUB_STEP_SUMMARY"
exit "$status"
