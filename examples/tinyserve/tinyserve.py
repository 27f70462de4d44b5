#!/usr/bin/env python3
"""tinyserve: a small LLM-style server without a network, to be recorded.

A Python scheduler batches a seeded stream of requests continuously around a native transformer on the CPU. The weights
are random, so the answers mean nothing; the work is real. Prints its metrics as JSON.
"""

import argparse
import json
import os
import signal
import sys
import time

from engine import Engine
from metrics import summary
from scheduler import Scheduler, StepLog
from workload import request_stream


def positive(kind):
    def check(text):
        value = kind(text)
        if not value > 0:
            raise argparse.ArgumentTypeError("must be greater than 0")
        return value
    return check


def parse(arguments):
    parser = argparse.ArgumentParser(prog="tinyserve", description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=positive(int), help="stop after so many (default 60, or no limit with --duration)")
    parser.add_argument("--duration", type=positive(float), help="accept requests for so many seconds")
    parser.add_argument("--rate", type=float, default=6.0, help="requests per second; 0: all at once (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the requests and the weights (default %(default)s)")
    parser.add_argument("--layers", type=positive(int), default=8, help="default %(default)s")
    parser.add_argument("--width", type=positive(int), default=384, help="a multiple of 64 (default %(default)s)")
    parser.add_argument("--slots", type=positive(int), default=8, help="requests at work at once (default %(default)s)")
    parser.add_argument("--threads", type=positive(int), default=min(2, len(os.sched_getaffinity(0))),
                        help="of the engine (default %(default)s)")
    parser.add_argument("--extra-work", type=float, default=0.0, metavar="PERCENT",
                        help="of every matrix product that is computed once more, for nothing: a slowdown of known size")
    parser.add_argument("--log-requests", metavar="FILE", help="log every step and fsync it")
    parser.add_argument("--step-times", metavar="FILE", help="write phase, size and time of every step as CSV")
    parser.add_argument("--faults", action="store_true", help="let `culprit inject gil` disturb this process")
    parser.add_argument("--library", help="libtinyserve.so, when it is not beside this file")
    options = parser.parse_args(arguments)
    if options.rate < 0:
        parser.error("--rate must not be negative")
    if options.duration and not options.requests and options.rate == 0:
        parser.error("--duration needs a --rate or a number of --requests")
    if not options.requests and not options.duration:
        options.requests = 60
    return options


def write_steps(path, steps):
    with open(path, "w", encoding="utf-8") as out:
        out.write("step,phase,batch,tokens,begin_ns,duration_ns\n")
        for index, step in enumerate(steps):
            out.write(",".join(map(str, (index, *step))) + "\n")


def main(arguments=None):
    options = parse(arguments)
    if options.faults:
        try:
            import gil_fault
        except ImportError:
            raise SystemExit("tinyserve: --faults needs gil_fault.py beside this file")
        gil_fault.start()
    engine = Engine(options.layers, options.width, options.slots, 128, options.threads, options.seed & 0xFFFFFFFFFFFFFFFF,
                    options.extra_work / 100, options.library)
    count = options.requests if options.requests else sys.maxsize
    stream = request_stream(count, options.rate, options.seed, Engine.VOCABULARY)
    log = StepLog(options.log_requests) if options.log_requests else None
    scheduler = Scheduler(engine, stream, duration=options.duration, log=log)
    signal.signal(signal.SIGTERM, lambda *_: scheduler.stop())
    begin = time.monotonic()
    scheduler.run()
    elapsed = time.monotonic() - begin
    if log:
        log.close()
    if options.step_times:
        write_steps(options.step_times, scheduler.steps)
    result = {"weights": engine.weights, "instructions": engine.instructions, "threads": options.threads,
              **summary(scheduler, elapsed)}
    engine.close()
    json.dump(result, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
