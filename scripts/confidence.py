"""How often causes are right that are named with one confidence, for the trials that know the truth."""

import collections


def table(named):
    """Of (confidence, whether it is right) a table in Markdown, the surest first."""
    counts = collections.defaultdict(lambda: [0, 0])
    for confidence, right in named:
        counts[round(100 * confidence)][0] += 1
        counts[round(100 * confidence)][1] += bool(right)
    lines = ["| confidence | first causes named with it | of these right |", "|--:|--:|--:|"]
    lines += [f"| {percent} % | {all_of} | {right} ({100 * right / all_of:.0f} %) |" for percent, (all_of, right) in sorted(counts.items(), reverse=True)]
    return "\n".join(lines)
