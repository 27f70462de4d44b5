#!/bin/sh
# ab.sh OLD NEW [SUMMARY.md]: builds two checkouts with make, compares `./bench` of both in turns, and ends with 1 when the new one is slower.
# DETECT (5%) and BUDGET (5m) say what matters and how long that may take.
set -eu
old=$1 new=$2 summary=${3:-}
for tree in "$old" "$new"; do make -s -C "$tree"; done
set -- --detect "${DETECT:-5%}" --budget "${BUDGET:-5m}" --fail-on regression
[ -z "$summary" ] || set -- "$@" -o "$summary" --force
exec culprit ab -q "$@" -- "$old/bench" --vs -- "$new/bench"
