"""The native model by way of ctypes. Every call into it releases the interpreter lock, as inference engines do."""

import ctypes
import os
import pathlib


def find_library(explicit=None):
    """The library beside this file, or where the build folder of a source tree has it."""
    here = pathlib.Path(__file__).resolve().parent
    candidates = [explicit] if explicit else [
        os.environ.get("TINYSERVE_LIBRARY"), here / "libtinyserve.so",
        here.parent.parent / "build" / "examples" / "tinyserve" / "libtinyserve.so"]
    for candidate in candidates:
        if candidate and pathlib.Path(candidate).is_file():
            return str(candidate)
    raise SystemExit("tinyserve: libtinyserve.so not found; run `make build`, or name it with --library")


class Engine:
    """A transformer with a KV cache of `slots` requests of up to `context` tokens."""

    VOCABULARY = 4096

    def __init__(self, layers, width, slots, context, threads, seed, extra=0.0, library=None):
        lib = ctypes.CDLL(find_library(library))
        lib.tinyserve_create.restype = ctypes.c_void_p
        lib.tinyserve_create.argtypes = [ctypes.c_int] * 5 + [ctypes.c_uint64, ctypes.c_double, ctypes.c_char_p, ctypes.c_int]
        lib.tinyserve_forward.argtypes = [ctypes.c_void_p, ctypes.c_int] + [ctypes.POINTER(ctypes.c_int32)] * 4
        lib.tinyserve_release.argtypes = [ctypes.c_void_p, ctypes.c_int]
        lib.tinyserve_destroy.argtypes = [ctypes.c_void_p]
        lib.tinyserve_weights.argtypes = [ctypes.c_void_p]
        lib.tinyserve_weights.restype = ctypes.c_uint64
        lib.tinyserve_instructions.restype = ctypes.c_char_p
        for name in ("tinyserve_range_push", "tinyserve_mark"):
            getattr(lib, name).argtypes = [ctypes.c_char_p]
            getattr(lib, name).restype = None
        lib.tinyserve_range_pop.restype = None
        self._lib = lib
        why = ctypes.create_string_buffer(256)
        self._model = lib.tinyserve_create(layers, width, slots, context, threads, seed, extra, why, len(why))
        if not self._model:
            raise SystemExit("tinyserve: " + why.value.decode())
        self.slots = slots
        self.context = context
        self.weights = lib.tinyserve_weights(self._model)
        self.instructions = lib.tinyserve_instructions().decode()

    def forward(self, pieces):
        """Puts (slot, tokens) pairs through the model; the next token of each."""
        n = len(pieces)
        slots = (ctypes.c_int32 * n)(*[slot for slot, _ in pieces])
        lengths = (ctypes.c_int32 * n)(*[len(tokens) for _, tokens in pieces])
        flat = [token for _, tokens in pieces for token in tokens]
        following = (ctypes.c_int32 * n)()
        if self._lib.tinyserve_forward(self._model, n, slots, lengths, (ctypes.c_int32 * len(flat))(*flat), following):
            raise ValueError("tinyserve: the engine refused a batch")
        return list(following)

    def release(self, slot):
        self._lib.tinyserve_release(self._model, slot)

    def close(self):
        if self._model:
            self._lib.tinyserve_destroy(self._model)
            self._model = None

    def range(self, name):
        return _Range(self._lib, name)


class _Range:
    """An NVTX range around a `with` block."""

    def __init__(self, lib, name):
        self._lib = lib
        self._name = name.encode()

    def __enter__(self):
        self._lib.tinyserve_range_push(self._name)

    def __exit__(self, *_):
        self._lib.tinyserve_range_pop()
