#!/usr/bin/env python3
"""Training loops of PyTorch and generation with transformers, whose steps are recorded without being named: on packages of the same names (scripts/trial-pairs trains with the real PyTorch).

    attach_library_test.py --bin BUILD_DIR [unittest options]
"""

import json
import os
import subprocess
import sys

import attaching
from attaching import Case

OPTIMIZER = """
import functools
class Optimizer:
    def __init__(self):
        type(self).step = self.profile_hook_step(type(self).step)
    @staticmethod
    def profile_hook_step(func):
        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            return func(*args, **kwargs)
        return wrapper
"""

GENERATION = """
class GenerationMixin:
    def _update_model_kwargs_for_generation(self):
        pass
"""

LOADER = """
import time
class Sampler:
    batch_size = 32
class _BaseDataLoaderIter:
    def __init__(self):
        self._index_sampler = Sampler()
    def __next__(self):
        time.sleep(0.004)
        return 1
"""

LOOP = """
import ctypes, sys, time
sys.path.insert(0, %(folder)r)
ctypes.CDLL(%(library)r)
import torch.optim.optimizer, torch.utils.data.dataloader
class SGD(torch.optim.optimizer.Optimizer):
    def step(self):
        time.sleep(0.001)
data, optimizer = torch.utils.data.dataloader._BaseDataLoaderIter(), SGD()
print("ready", flush=True)
end = time.monotonic() + 120
while time.monotonic() < end:
    data.__next__()
    sum(range(100000))
    optimizer.step()
"""


GENERATE = """
import ctypes, sys, time
sys.path.insert(0, %(folder)r)
ctypes.CDLL(%(library)r)
from transformers.generation.utils import GenerationMixin
model = GenerationMixin()
print("ready", flush=True)
end = time.monotonic() + 120
while time.monotonic() < end:
    sum(range(100000))
    model._update_model_kwargs_for_generation()
"""


class Library(Case):
    def package(self, name, text):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def loop(self, folder, library, name="loop.py", text=LOOP):
        """A process whose command line names neither a server nor the library."""
        self.package("torch/optim/optimizer.py", OPTIMIZER)
        self.package("torch/utils/data/dataloader.py", LOADER)
        self.package("transformers/generation/utils.py", GENERATION)
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", self.path(library)], check=True)
        os.makedirs(self.path(folder), exist_ok=True)
        script = self.path(f"{folder}/{name}")
        with open(script, "w", encoding="utf-8") as file:
            file.write(text % {"folder": self.folder.name, "library": self.path(library)})
        child = self.start([sys.executable, script])
        self.assertEqual(child.stdout.readline(), "ready\n")
        return child

    def record(self, child):
        done = self.culprit("record", "--collect", "python", "-o", self.path(), "-p", str(child.pid), "--duration", "2s")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def cycles(self):
        """Nothing where there are none."""
        done = self.culprit("cycles", "--json", self.path())
        self.assertIn(done.returncode, (0, 3), done.stderr)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def test_steps_of_training_are_recorded_without_being_named(self):
        said = self.record(self.loop("any", "libtorch_python.so"))
        self.assertRegex(said, r"[0-9]+ steps")
        self.assertNotIn("this version of the program", said)
        cycles = self.cycles()
        self.assertEqual(cycles["anchor"], "step: Optimizer.step")
        self.assertGreater(cycles["periods"][0]["cycles"], 20)
        self.assertEqual({cycle["batch"] for cycle in cycles["tables"][0]["rows"][1:-1]}, {32})
        for name in ("_BaseDataLoaderIter.__next__", "Optimizer.step"):
            self.assertGreater(self.calls().get(name, 0), 20, name)

    def test_steps_of_generated_text_are_too(self):
        self.record(self.loop("any", "libtorch_python.so", text=GENERATE))
        cycles = self.cycles()
        self.assertEqual(cycles["anchor"], "step.end[...]")
        self.assertEqual(cycles["periods"][0]["phase"], "decode")
        self.assertGreater(cycles["periods"][0]["cycles"], 20)

    def test_not_of_a_program_that_has_not_loaded_it(self):
        self.record(self.loop("any", "libother_python.so"))
        self.assertIsNone(self.cycles())
        self.assertEqual(self.calls(), {})

    def test_nor_of_a_server_that_is_known(self):
        self.record(self.loop("any", "libtorch_python.so", name="vllm"))
        self.assertEqual(self.calls(), {})

    def test_a_program_in_a_folder_with_the_name_of_a_server_is_none(self):
        self.record(self.loop("vllm/bin", "libtorch_python.so"))
        self.assertEqual(self.cycles()["anchor"], "step: Optimizer.step")


if __name__ == "__main__":
    attaching.main()
