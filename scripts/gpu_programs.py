"""What scripts/trial-gpu measures: PyTorch programs on one GPU, each with known changes, and what may run beside them.

    python3 gpu_programs.py PROGRAM KIND TRACE [--steps N]     warms up, prints "ready", waits for a line, is traced, prints its steps as JSON
    python3 gpu_programs.py --beside NAME                      prints "ready", then does nothing until a line says "on", until one says "off"

A program is traced by torch.profiler for its last steps. Each is a process of its own on the same four CPUs, whatever the kind.
"""

import argparse
import contextlib
import json
import os
import select
import sys
import threading
import time

PROGRAMS = {
    "train": ("normal", "matmuls", "copies", "transfers", "cpu", "input", "wide", "added", "sync", "math", "fp32", "batch", "python", "pageable", "emptycache"),
    "decode": ("normal", "matmuls", "cpu", "python", "prompts", "batch", "layer", "gil"),
    "graph": ("normal", "matmuls", "copies", "cpu", "math", "batch"),
}
BESIDE = {"matmuls": 1, "copies": 1, "transfers": 1, "cpu": 8}  # what runs beside the program in the kinds of these names: processes
CPUS = 4
WIDTH, HEADS, VOCABULARY = 1024, 16, 8192
WARMUP_SECONDS = 0.7
TOKENS = 24  # that a request of `decode` and `graph` gets after its prompt


def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def hold():
    """A thread that wants the interpreter's lock a tenth of the time."""
    while True:
        spin(0.0005)
        time.sleep(0.0045)


# ---- the model


def attention(torch, kind):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    return sdpa_kernel(SDPBackend.MATH) if kind == "math" else contextlib.nullcontext()


def build(torch, kind, layers, checks=False):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, hidden):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, hidden), nn.Linear(hidden, WIDTH)

        def forward(self, x, cache=None, at=None, mask=None):
            q, k, v = self.qkv(self.norm1(x)).view(*x.shape[:2], 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
            if cache is not None:
                cache[0].index_copy_(2, at, k)
                cache[1].index_copy_(2, at, v)
                k, v = cache
            y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=cache is None)
            x = x + self.proj(y.transpose(1, 2).reshape(x.shape))
            y = nn.functional.gelu(self.up(self.norm2(x)))
            if kind == "added":
                y = torch.erf(y)
            if kind == "sync" and checks:
                assert torch.isfinite(y.sum()).item()
            return x + self.down(y)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.norm, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)
            self.blocks = nn.ModuleList(Block(4 * WIDTH * (2 if kind == "wide" and i == 2 else 1)) for i in range(layers))

        def forward(self, tokens, caches=None, at=None, mask=None):
            x = self.embed(tokens)
            for i, block in enumerate(self.blocks):
                x = block(x, caches[i] if caches else None, at, mask)
            return self.head(self.norm(x if caches is None else x[:, -1:]))

    return Model()


# ---- the programs: each returns a function that does the next step


class Texts:
    """Items of a data set, made when they are asked for."""

    def __init__(self, torch, kind):
        self.torch, self.kind = torch, kind

    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        if self.kind == "input":
            spin(0.003)
        return self.torch.randint(VOCABULARY, (513,))


def train(torch, kind):
    dtype = torch.float32 if kind == "fp32" else torch.bfloat16
    model = build(torch, kind, 6, checks=True).to("cuda", dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)
    batch = 48 if kind == "batch" else 32
    loader = iter(torch.utils.data.DataLoader(Texts(torch, kind), batch_size=batch, num_workers=2, pin_memory=kind != "pageable", prefetch_factor=2))
    frames = torch.randn(batch, 1 << 18, pin_memory=kind != "pageable")  # 32 MB that go to the device with the tokens

    def step():
        texts = next(loader).to("cuda", non_blocking=True)
        scale = frames.to("cuda", non_blocking=True).mean()
        with attention(torch, kind):
            logits = model(texts[:, :-1]).float()
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), texts[:, 1:].flatten()) + 0 * scale
            loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if kind == "python":
            spin(0.02)
        if kind == "emptycache":
            torch.cuda.empty_cache()

    return step


def decode(torch, kind):
    """Requests one after the other: a prompt, then tokens, each read by the host, as servers do."""
    layers, batch, prompt = 14 if kind == "layer" else 12, 24 if kind == "batch" else 16, 448 if kind == "prompts" else 128
    model, room = build(torch, kind, layers).to("cuda", torch.bfloat16), 512
    caches = [[torch.zeros(batch, HEADS, room, WIDTH // HEADS, device="cuda", dtype=torch.bfloat16) for _ in range(2)] for _ in range(layers)]
    places = torch.arange(room, device="cuda")
    state = {"left": 0}

    def step():
        first = state["left"] == 0
        if first:
            state.update(left=TOKENS + 1, tokens=torch.randint(VOCABULARY, (batch, prompt)), at=0)
        tokens, at = state["tokens"], state["at"]
        length = tokens.shape[1]
        with torch.profiler.record_function(f"step[{'EXTEND' if first else 'DECODE'} bs={batch} toks={batch * length}]"), torch.inference_mode():
            where = places[at:at + length]
            mask = places[None, :] <= where[:, None]
            with attention(torch, kind):
                following = model(tokens.to("cuda"), caches, where, mask).argmax(-1)
            state["tokens"] = torch.tensor(following.tolist())
        state.update(left=state["left"] - 1, at=at + length)
        if kind == "python":
            spin(0.001)

    if kind == "gil":
        threading.Thread(target=hold, daemon=True).start()
    return step


def graph(torch, kind):
    """Decode steps of one shape that replay a CUDA graph."""
    layers, batch, room = 12, 96 if kind == "batch" else 64, 512
    model = build(torch, kind, layers).to("cuda", torch.bfloat16)
    caches = [[torch.zeros(batch, HEADS, room, WIDTH // HEADS, device="cuda", dtype=torch.bfloat16) for _ in range(2)] for _ in range(layers)]
    tokens, at = torch.zeros(batch, 1, dtype=torch.long, device="cuda"), torch.zeros(1, dtype=torch.long, device="cuda")
    places = torch.arange(room, device="cuda")

    def forward():
        with torch.inference_mode(), attention(torch, kind):
            return model(tokens, caches, at, places[None, :] <= at[:, None]).argmax(-1)

    aside = torch.cuda.Stream()
    with torch.cuda.stream(aside):
        for _ in range(3):
            forward()
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        following = forward()
    number = iter(range(1 << 30))

    def step():
        with torch.profiler.record_function(f"step[DECODE bs={batch} toks={batch}]"):
            at.fill_(next(number) % room)
            captured.replay()
            tokens.copy_(torch.tensor(following.tolist()))

    return step


STEPS = {"train": 12, "decode": 2 * (TOKENS + 1), "graph": 60}


def use_cpus(cpus):
    """All threads there are, and those that they start."""
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread), cpus)


def run(options):
    cpus = sorted(os.sched_getaffinity(0))
    use_cpus(cpus[CPUS:] or cpus)  # what starts, or writes its trace, is in nobody's way
    import torch
    from torch.profiler import ProfilerActivity, profile
    torch.manual_seed(1)
    torch.set_num_threads(1)
    step = {"train": train, "decode": decode, "graph": graph}[options.program](torch, options.kind)
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    for _ in range(2):
        step()
    with profile(activities=activities):  # the first one sets CUPTI up
        step()
    torch.cuda.synchronize()
    print("ready", flush=True)
    sys.stdin.readline()
    use_cpus(cpus[:CPUS])
    end, done = time.monotonic() + WARMUP_SECONDS, 3
    while time.monotonic() < end or (options.program == "decode" and done % (TOKENS + 1)):
        step()
        done += 1
        torch.cuda.synchronize()
    marked = options.program == "train"
    plan = torch.profiler.schedule(wait=0, warmup=1, active=options.steps, repeat=1) if marked else None  # a schedule marks steps
    profiler = profile(activities=activities, schedule=plan, on_trace_ready=lambda done: done.export_chrome_trace(options.trace))
    profiler.start()
    if marked:
        step()
        torch.cuda.synchronize()
        profiler.step()
    took, begin = [], time.monotonic()
    for i in range(options.steps):
        before = time.monotonic()
        step()
        took.append(time.monotonic() - before)
        if marked and i + 1 < options.steps:
            profiler.step()
    torch.cuda.synchronize()
    whole = time.monotonic() - begin
    print(json.dumps({"step_s": whole / options.steps, "steps_s": took}), flush=True)
    use_cpus(cpus[CPUS:] or cpus)
    if marked:
        profiler.step()
    else:
        profiler.stop()
    os._exit(0)  # workers of the loader and threads that spin need not be waited for


# ---- what runs beside a program


def beside(name):
    if name == "cpu":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CPUS])
        work = lambda: spin(0.002)
    else:
        import torch
        if name == "matmuls":
            a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
            once = lambda: torch.matmul(a, a)
        elif name == "copies":
            a = torch.randn(1 << 28, device="cuda")
            b = torch.empty_like(a)
            once = lambda: b.copy_(a)
        else:
            a = torch.empty(1 << 26, pin_memory=True)
            b = torch.empty(1 << 26, device="cuda")
            once = lambda: b.copy_(a, non_blocking=True)

        def work():
            for _ in range(8):
                once()
            torch.cuda.synchronize()

        work()
    print("ready", flush=True)
    on = False
    while True:
        while not on or select.select([sys.stdin], [], [], 0)[0]:
            line = sys.stdin.readline()
            if not line:
                return
            on = line.strip() == "on"
        work()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", choices=sorted(PROGRAMS))
    parser.add_argument("kind", nargs="?")
    parser.add_argument("trace", nargs="?")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--beside", choices=sorted(BESIDE))
    options = parser.parse_args()
    if options.beside:
        return beside(options.beside)
    if not options.trace or options.kind not in PROGRAMS[options.program]:
        parser.error("needs PROGRAM, KIND and TRACE")
    options.steps = options.steps or STEPS[options.program]
    return run(options)


if __name__ == "__main__":
    main()
