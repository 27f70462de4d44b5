"""A training loop of PyTorch on the CPU for scripts/trial-pairs, run by a Python that has torch, and how it is started there.

    training_loop.py LOG [input|function|gc|batch|accumulate]: writes a byte into LOG for each step, and does not end

input: each sample takes long to make, in the loader's worker; function: a function of its own is called in each forward pass; gc: it collects garbage in each step; batch: its batches are
twice as large; accumulate: each step sums the gradients of two batches.
"""

import os
import subprocess
import sys
import time


class Training:
    """As the other programs of scripts/trial-pairs; it needs no client."""

    def __init__(self, folder, options, kind=""):
        self.log = os.path.join(folder, f"steps-{kind}")
        python = os.path.join(options.servers, "torch", "bin", "python")
        self.started = subprocess.Popen([python, os.path.abspath(__file__), self.log, *([kind] if kind else [])], stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while not os.path.exists(self.log) or self.done() < 50:
            if self.started.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the training loop does not train ({python})")
            time.sleep(0.1)

    def client(self, _seconds):
        return None

    def done(self):
        return os.path.getsize(self.log)


def augment(x):
    total = 0
    for i in range(100000):
        total += i * i
    return x


def main():
    import gc

    import numpy
    import torch

    kind = sys.argv[2] if len(sys.argv) > 2 else ""
    torch.manual_seed(0)
    torch.set_num_threads(1)

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 1 << 30

        def __getitem__(self, index):
            random = numpy.random.default_rng(index)
            sample = random.standard_normal((16, 64), dtype=numpy.float32)
            for _ in range(60 if kind == "input" else 0):
                sample = numpy.sort(sample, axis=1) + random.standard_normal((16, 64), dtype=numpy.float32)
            return torch.from_numpy(sample), index % 10

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(64, 4, 256, batch_first=True), 2)
            self.head = torch.nn.Linear(64, 10)

        def forward(self, x):
            return self.head(self.encoder(augment(x) if kind == "function" else x).mean(1))

    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    with open(sys.argv[1], "wb", buffering=0) as log:
        for number, (x, y) in enumerate(torch.utils.data.DataLoader(Data(), batch_size=64 if kind == "batch" else 32, num_workers=1)):
            torch.nn.functional.cross_entropy(model(x), y).backward()
            if kind == "accumulate" and number % 2 == 0:
                continue
            optimizer.step()
            optimizer.zero_grad()
            if kind == "gc":
                gc.collect()
            log.write(b".")


if __name__ == "__main__":
    main()
