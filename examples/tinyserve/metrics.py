"""What a run was like, as plain data."""

import hashlib


def quantiles(values):
    """Mean, median, 95th and 99th percentile (nearest rank); None without values."""
    if not values:
        return None
    ordered = sorted(values)
    at = lambda q: ordered[min(len(ordered) - 1, int(q * len(ordered)))]
    return {"mean": sum(ordered) / len(ordered), "p50": at(0.50), "p95": at(0.95), "p99": at(0.99)}


def milliseconds(values):
    summary = quantiles([1e3 * v for v in values])
    return {k: round(v, 3) for k, v in summary.items()} if summary else None


def token_digest(requests):
    """Tells whether two runs gave the same answers."""
    digest = hashlib.sha256()
    for request in sorted(requests, key=lambda r: r.rid):
        digest.update(f"{request.rid}:{','.join(map(str, request.output))};".encode())
    return digest.hexdigest()


def summary(scheduler, elapsed):
    done = scheduler.finished
    tokens = sum(len(r.output) for r in done)
    phases = {}
    for phase in ("EXTEND", "DECODE"):
        durations = [step[4] / 1e9 for step in scheduler.steps if step[0] == phase]
        phases[phase] = {"count": len(durations), "ms": milliseconds(durations)}
    return {
        "requests": len(done),
        "output_tokens": tokens,
        "elapsed_s": round(elapsed, 3),
        "tokens_per_s": round(tokens / elapsed, 1) if elapsed > 0 else None,
        "queue_ms": milliseconds([r.scheduled - r.arrival for r in done]),
        "ttft_ms": milliseconds([r.first_token - r.arrival for r in done]),
        "tpot_ms": milliseconds([(r.finish - r.first_token) / (len(r.output) - 1) for r in done if len(r.output) > 1]),
        "steps": phases,
        "token_digest": token_digest(done),
    }
