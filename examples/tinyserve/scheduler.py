"""Continuous batching: requests join and leave between steps; a step is either a prefill of new requests or a decode of
all running ones."""

import collections
import os
import time


class Batch:
    """The work of one step: the pieces for the engine and the requests they belong to."""

    def __init__(self, phase, requests):
        self.phase = phase
        self.mode = 1 if phase == "EXTEND" else 2  # a number, for those who look from outside
        self.requests = requests
        if phase == "EXTEND":
            self.pieces = [(r.slot, r.prompt) for r in requests]
        else:
            self.pieces = [(r.slot, r.output[-1:]) for r in requests]
        self.tokens = sum(len(tokens) for _, tokens in self.pieces)

    @property
    def name(self):
        return f"step[{self.phase} bs={len(self.requests)} toks={self.tokens}]"


class StepLog:
    """One line per step, on the disk before the next step begins. No tokens, only their numbers."""

    def __init__(self, path):
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)

    def write(self, index, batch):
        line = f"{index} {batch.phase} " + ",".join(str(r.rid) for r in batch.requests) + "\n"
        os.write(self._fd, line.encode())
        os.fsync(self._fd)

    def close(self):
        os.close(self._fd)


class Scheduler:
    def __init__(self, engine, stream, prefill_tokens=64, duration=None, log=None):
        self.engine = engine
        self.prefill_tokens = prefill_tokens
        self.duration = duration
        self.log = log
        self._stream = iter(stream)
        self._upcoming = next(self._stream, None)
        self.waiting = collections.deque()
        self.running = []
        self.finished = []
        self.free_slots = list(range(engine.slots - 1, -1, -1))
        self.steps = []  # (phase, requests, tokens, begin ns, duration ns), CLOCK_MONOTONIC
        self._start = time.monotonic()
        self._is_stopped = False

    def stop(self):
        """Takes up no more requests; run() returns when those at work are finished. May be called by a signal handler."""
        self._is_stopped = True

    def now(self):
        return time.monotonic() - self._start

    def recv_requests(self):
        """Takes over what has arrived by now."""
        now = self.now()
        if self._is_stopped:
            self._upcoming = None
            self.waiting.clear()
        if self.duration is not None and now >= self.duration:
            self._upcoming = None
        while self._upcoming is not None and self._upcoming.arrival <= now:
            self.waiting.append(self._upcoming)
            self._upcoming = next(self._stream, None)

    def wait_for_requests(self):
        """Nothing to do: sleeps until the next arrival."""
        with self.engine.range("wait_for_requests"):
            time.sleep(max(0.0, self._upcoming.arrival - self.now()))

    def get_next_batch(self):
        """New requests first, as many as fit the slots and the budget of prompt tokens; else all that are running."""
        chosen, tokens = [], 0
        while self.waiting and self.free_slots:
            request = self.waiting[0]
            if chosen and tokens + len(request.prompt) > self.prefill_tokens:
                break
            tokens += len(request.prompt)
            request.slot = self.free_slots.pop()
            request.scheduled = self.now()
            chosen.append(self.waiting.popleft())
        if chosen:
            return Batch("EXTEND", chosen)
        return Batch("DECODE", list(self.running)) if self.running else None

    def run_batch(self, batch):
        """One step: forward, and what follows from its tokens."""
        begin = time.monotonic_ns()
        with self.engine.range(batch.name):
            following = self.engine.forward(batch.pieces)
            self.process_batch_result(batch, following)
            if self.log is not None:
                with self.engine.range("log"):
                    self.log.write(len(self.steps), batch)
        self.steps.append((batch.phase, len(batch.requests), batch.tokens, begin, time.monotonic_ns() - begin))

    def process_batch_result(self, batch, following):
        now = self.now()
        for request, token in zip(batch.requests, following):
            request.output.append(token)
            if request.first_token is None:
                request.first_token = now
                self.running.append(request)
            if request.done:
                request.finish = now
                self.running.remove(request)
                self.finished.append(request)
                self.engine.release(request.slot)
                self.free_slots.append(request.slot)

    def run(self):
        """Serves the stream to its end."""
        self._start = time.monotonic()
        while True:
            self.recv_requests()
            batch = self.get_next_batch()
            if batch is not None:
                self.run_batch(batch)
            elif self._upcoming is not None:
                self.wait_for_requests()
            else:
                return
