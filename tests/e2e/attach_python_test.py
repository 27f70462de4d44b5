#!/usr/bin/env python3
"""What functions of running Python programs look like to the program, to its children and to other tools, and what is said where they cannot be watched.

    attach_python_test.py --bin BUILD_DIR [unittest options]
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time

import attaching
import pftrace
from attaching import LIMIT, Case, interpreters, version_of

# Answers each line, an expression, with its value.
ANSWERS = """
import asyncio, gc, inspect, json, os, sys, threading, time
%s
print("ready", flush=True)
for line in sys.stdin:
    if line == "end\\n":
        break
    print(json.dumps(eval(line)), flush=True)
"""


class Python(Case):
    def answering(self, setup, python=None):
        return self.program(*([python] if python else []), text=ANSWERS % setup)

    def newest(self):
        """With sys.monitoring."""
        for python in reversed(interpreters()):
            if version_of(python) >= (3, 12):
                return python
        return self.skipTest("no Python 3.12 here")

    def end(self, child):
        child.stdin.write("end\n")
        child.stdin.flush()
        self.assertEqual(child.wait(timeout=LIMIT), 0)

    def rows(self, name="run.pftrace"):
        done = self.culprit("top", "--json", "--limit", "0", "--class", "python", self.path(name))
        return json.loads(done.stdout)["tables"][0]["rows"]

    def test_where_no_tool_is_free_that_is_the_reason(self):
        child = self.answering("[sys.monitoring.use_tool_id(n, 'other') for n in range(6)]\ndef work(n): return n", self.newest())
        done = self.culprit("record", "--collect", "python", "-o", self.path(), "-p", str(child.pid), "--duration", "500ms", "--python", "__main__:work")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("others use sys.monitoring", done.stderr)
        self.assertNotIn("no such function was imported", done.stderr)
        self.assertIn("others use sys.monitoring", self.facts()["missing.python.__main__:work"])
        self.end(child)

    def test_an_agent_whose_recorder_stood_still_is_put_in_again(self):
        child = self.answering("def work(n): return n\ndef turn():\n    time.sleep(0.01); return [work(n) for n in range(10)][-1]")
        recorder = self.recorder(child.pid, "__main__:work", "__main__:turn")
        self.attached(recorder, child)
        self.ask(child, "turn()")
        self.stop(recorder)
        self.idle(child)
        recorder.send_signal(signal.SIGCONT)
        self.attached(recorder, child)
        self.ask(child, "turn()")
        self.finish(recorder)
        facts = self.facts()
        self.assertIn("stood still", facts[f"missing.python.{child.pid}"])
        self.assertEqual(self.calls()["work"], 20)
        self.assertLess(max(row["max_ns"] for row in self.rows()), 1e9)
        self.end(child)

    def test_one_that_is_refused_then_is_tried_again(self):
        child = self.answering("def work(n): return n")
        recorder = self.recorder(child.pid, "__main__:work")
        self.attached(recorder, child)
        self.stop(recorder)
        self.idle(child)
        self.stop(child)
        recorder.send_signal(signal.SIGCONT)
        time.sleep(2)  # it is refused in that time, which takes a second
        child.send_signal(signal.SIGCONT)
        self.attached(recorder, child)
        self.ask(child, "[work(n) for n in range(5)]")
        recorder.send_signal(signal.SIGINT)
        _, errors = recorder.communicate(timeout=LIMIT)
        self.assertEqual(recorder.returncode, 0, errors)
        self.assertEqual(self.calls(), {"work": 5})
        self.assertNotIn("it is stopped", errors)
        self.end(child)

    def test_a_recorder_that_stood_still_until_its_end_says_so(self):
        child = self.answering("def work(n): return n")
        recorder = self.recorder(child.pid, "__main__:work")
        self.attached(recorder, child)
        self.stop(recorder)
        self.idle(child)
        recorder.send_signal(signal.SIGINT)
        recorder.send_signal(signal.SIGCONT)
        _, errors = recorder.communicate(timeout=LIMIT)
        self.assertEqual(recorder.returncode, 0, errors)
        self.assertIn("stood still", self.facts()[f"missing.python.{child.pid}"])
        self.end(child)

    def test_a_program_that_executes_itself_anew_is_watched_again(self):
        with open("/proc/self/personality", encoding="ascii") as file:
            if int(file.read(), 16) & 0x0040000:  # ADDR_NO_RANDOMIZE
                self.skipTest("addresses are not randomised here: the same program anew has its stack at the same place")
        child = self.answering("def work(n): return n\ndef anew(): os.execv(sys.executable, [sys.executable, *sys.argv])")
        recorder = self.recorder(child.pid, "__main__:work")
        self.attached(recorder, child)
        self.ask(child, "work(1)")
        child.stdin.write("anew()\n")
        child.stdin.flush()
        self.assertEqual(child.stdout.readline(), "ready\n")
        self.attached(recorder, child)
        self.ask(child, "[work(n) for n in range(5)]")
        self.finish(recorder)
        self.assertEqual(self.calls(), {"work": 6})
        self.end(child)

    def test_a_coroutine_is_one_step(self):
        setup = ("async def serve():\n    for _ in range(3): await asyncio.sleep(0)\n    return 1\n"
                 "def turn(): return asyncio.run(serve())")
        for python in interpreters():
            with self.subTest(python):
                child = self.answering(setup, python)
                name = f"{len(self.children)}.pftrace"
                recorder = self.recorder(child.pid, "__main__:serve as turn", name=name)
                self.attached(recorder, child)
                self.ask(child, "[turn() for _ in range(5)]")
                self.finish(recorder)
                calls = self.calls(name, "all")
                self.assertEqual((calls["step: turn"], calls["serve"]), (5, 5 * 4))
                self.end(child)

    def test_functions_that_this_version_of_a_server_lacks_are_named(self):
        folder = self.path("sglang/srt/managers")
        os.makedirs(folder)
        with open(folder + "/scheduler.py", "w", encoding="utf-8") as file:
            file.write("class Scheduler:\n    def run_batch(self, batch): return batch\n    def get_next_batch_to_run(self): return 0\n    def process_input_requests(self, recv_reqs): return 0\n")
        with open(self.path("sglang/serve.py"), "w", encoding="utf-8") as file:
            file.write(f"import sys; sys.path.insert(0, {self.folder.name!r})\n" + ANSWERS % "import sglang.srt.managers.scheduler")
        child = self.start([sys.executable, self.path("sglang/serve.py")])
        self.assertEqual(child.stdout.readline(), "ready\n")
        done = self.culprit("record", "--collect", "python", "-o", self.path(), "-p", str(child.pid), "--duration", "500ms")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(re.sub(r"\s+", " ", done.stderr), r"sglang\.srt\.managers\.scheduler:Scheduler\.process_batch_result: this version")
        self.assertNotIn("release_kv_cache", done.stderr, "its module was not imported at all")
        self.assertNotIn("Scheduler.run_batch", done.stderr)
        self.end(child)

    def test_no_text_is_in_the_file_nor_in_the_ring(self):
        child = self.answering("class Batch:\n    def __init__(self): self.size, self.reqs = 'SECRET-' + 'PROMPT', [1, 2]\ndef run(batch, name='none', *rest): return 0\n"
                               "def turns():\n    [run(Batch(), 'SECRET-' + 'PROMPT', 'SECRET-' + 'PROMPT') for _ in range(200)]; return 200")
        recorder = self.recorder(child.pid, "__main__:run(size=batch.size, length=len(batch.size), sum(batch.size), name, n=len(batch.reqs)) as call[{size} {length}]")
        self.attached(recorder, child)
        self.assertEqual(self.ask(child, "turns()"), 200)
        memory = self.ring(child.pid)
        self.finish(recorder)
        self.assertTrue(b"__main__:run" in memory, "this is the ring")
        self.assertFalse(b"SECRET-PROMPT" in memory)
        plain = pftrace.plain(self.path())
        self.assertTrue(b"call[? 13]" in plain)
        self.assertFalse(b"SECRET-PROMPT" in plain)
        self.end(child)

    def test_a_child_that_lives_on_is_as_its_parent_was(self):
        for python in interpreters():
            with self.subTest(python):
                setup = ("def work(n): return n\ndef numbers(n): yield n\nbefore = [work.__code__, numbers.__code__]\n"
                         "def state(): return {'codes': [work.__code__, numbers.__code__] == before, 'gc': len(gc.callbacks), "
                         "'tools': [t for t in map(sys.monitoring.get_tool, range(6)) if t] if hasattr(sys, 'monitoring') else [], "
                         "'rings': sum('culprit-ring' in line for line in open('/proc/self/maps'))}\n"
                         "def child():\n    a, b = os.pipe()\n    if os.fork() == 0:\n        work(1); os.write(b, json.dumps(state()).encode()); time.sleep(3); os._exit(0)\n"
                         "    return json.loads(os.read(a, 4096))")
                child = self.answering(setup, python)
                recorder = self.recorder(child.pid, "__main__:work", "__main__:numbers", name=f"{len(self.children)}.pftrace")
                self.attached(recorder, child)
                self.stop(recorder)  # it would attach to the child, too
                self.assertEqual(self.ask(child, "child()"), {"codes": True, "gc": 0, "tools": [], "rings": 0})
                recorder.send_signal(signal.SIGCONT)
                self.assertGreater(self.ask(child, "state()")["rings"], 0, "its parent is watched still")
                self.finish(recorder)
                self.end(child)

    def test_generators_are_generators_while_they_are_watched(self):
        setup = ("def echo(n):\n    got = []\n    try:\n        while len(got) < n:\n            try: got.append((yield len(got)))\n            except KeyError: got.append('key')\n"
                 "        return got\n    finally: ended.append(len(got))\n"
                 "ended = []\n"
                 "def turn():\n    ended.clear(); g = echo(3); out = [next(g), g.send('a'), g.throw(KeyError()), inspect.isgeneratorfunction(echo), inspect.isgenerator(g)]\n"
                 "    try: g.send('b')\n    except StopIteration as end: out.append(end.value)\n"
                 "    g = echo(2); next(g); g.close(); out.append(list(ended)); out.append(list(echo(0)))\n    return out\n"
                 "import types\n@types.coroutine\ndef awaited(n):\n    yield\n    return n\n"
                 "async def waits(): return await awaited(5)")
        for python in interpreters():
            with self.subTest(python):
                child = self.answering(setup, python)
                before = self.ask(child, "turn()")
                self.assertEqual(before, [0, 1, 2, True, True, ["a", "key", "b"], [3, 0], []])
                recorder = self.recorder(child.pid, "__main__:echo", "__main__:awaited", name=f"{len(self.children)}.pftrace")
                self.attached(recorder, child)
                self.assertEqual(self.ask(child, "turn()"), before)
                self.assertEqual(self.ask(child, "asyncio.run(waits())"), 5)
                self.finish(recorder)
                self.assertEqual(self.ask(child, "turn()"), before)
                self.end(child)

    def test_a_function_that_is_asked_for_twice(self):
        for python in interpreters():
            with self.subTest(python):
                child = self.answering("def work(n): return n\nbefore = work.__code__", python)
                name = f"{len(self.children)}.pftrace"
                recorder = self.recorder(child.pid, "__main__:work as turn", "__main__:work(n)", name=name)
                self.attached(recorder, child)
                self.ask(child, "[work(n) for n in range(5)]")
                self.finish(recorder)
                calls = self.calls(name, "all")
                self.assertEqual((calls["work"], calls["step: turn"]), (5, 5))
                self.assertIn("is watched as __main__:work already: name all that is wanted of it in one line", self.facts(name)["missing.python.__main__:work(n)"])
                self.assertIs(self.ask(child, "work.__code__ is before"), True)
                self.end(child)

    def test_one_function_in_two_lines_that_want_different_things(self):
        for first, second in (("m:f(n) as a", "m:f(n) as b"), ("m:f", "m:f as b"), ("m:f(n) requests queue=n..now", "m:f(n)")):
            done = self.culprit("record", "-o", self.path(), "--python", first, "--python", second, "--", "true")
            self.assertEqual(done.returncode, 2)
            self.assertIn("twice, and asks for different things", done.stderr)
        done = self.culprit("record", "-o", self.path(), "--collect", "python", "--python", "m:f as a", "--python", "m:f as a", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_functions_that_share_their_code(self):
        setup = ("def timed(f):\n    def wrapper(n): return f(n)\n    return wrapper\n"
                 "a, b = timed(lambda n: n), timed(lambda n: n)\ndef turn(): return sum(a(n) + b(n) + b(n) for n in range(10))")
        for python in interpreters():
            with self.subTest(python):
                child = self.answering(setup, python)
                name = f"{len(self.children)}.pftrace"
                recorder = self.recorder(child.pid, "__main__:a", "__main__:b", name=name)
                self.attached(recorder, child)
                self.assertEqual(self.ask(child, "turn()"), 135)
                self.finish(recorder)
                calls = self.calls(name, "all")
                if version_of(python) >= (3, 12):
                    self.assertIn("shares its code with __main__:a", self.facts(name)["missing.python.__main__:b"])
                else:
                    self.assertEqual((calls["a"], calls["b"]), (10, 20))
                self.end(child)

    def test_what_a_function_does_not_have_is_said(self):
        setup = ("import functools\ndef work(n, *, size=3, **rest): return n\ndef plain(a): return a\nshort = functools.partial(plain, 1)\n"
                 "def turn(): return [work(n) for n in range(5)] + [plain(2), short()]")
        for python in interpreters():
            with self.subTest(python):
                child = self.answering(setup, python)
                name = f"{len(self.children)}.pftrace"
                recorder = self.recorder(child.pid, "__main__:work(n, size, other)", "__main__:short(a, b.c, len(d))", name=name)
                self.attached(recorder, child)
                self.ask(child, "turn()")
                self.finish(recorder)
                calls, facts = self.calls(name, "all"), self.facts(name)
                self.assertEqual((calls["work"], calls["short"]), (5, 2))
                self.assertNotIn("missing.python.__main__:work(n, size, other)", facts)
                self.assertEqual(facts["missing.python.__main__:short(a, b.c, len(d))"],
                                 "is functools.partial of plain: all calls of that are counted; has no argument b, d: its numbers are missing")
                self.end(child)

    def test_all_that_one_name_stands_for(self):
        setup = ("import functools\n@functools.singledispatch\ndef show(x): return 0\n@show.register\ndef _(x: int): return 1\n@show.register\ndef _(x: str): return 2\n"
                 "class Shows:\n    @functools.singledispatchmethod\n    def show(self, x): return 0\n    @show.register\n    def _(self, x: int): return 1\n"
                 "def maker(which):\n    if which:\n        def inner(n): return n\n    else:\n        def inner(n): return -n\n    return inner\n"
                 "a, b = maker(True), maker(False)\n"
                 "def turn(): return [show(1), show('a'), show(1.5), Shows().show(1), Shows().show('a'), a(1), b(1), b(2)]")
        for python in interpreters():
            with self.subTest(python):
                child = self.answering(setup, python)
                name = f"{len(self.children)}.pftrace"
                before = self.ask(child, "turn()")
                recorder = self.recorder(child.pid, "__main__:show", "__main__:Shows.show", "__main__:maker.<locals>.inner", name=name)
                self.attached(recorder, child)
                self.assertEqual(self.ask(child, "turn()"), before)
                self.finish(recorder)
                calls = self.calls(name, "all")
                self.assertEqual((calls["show"], calls["Shows.show"]), (3, 2))
                self.assertEqual(calls["maker.<locals>.inner"], 3)
                self.end(child)

    def test_functions_that_others_make_whenever_they_were_made(self):
        setup = ("import asyncio\n"
                 "def counter(step):\n    n = 0\n    def count(by=1, *more, unit=1):\n        nonlocal n\n        n += step * by * unit + len(more)\n        return n\n    return count\n"
                 "def outer(x):\n    def middle(y):\n        def inner(z): return x + y + z\n        return inner\n    return middle\n"
                 "def yields(x):\n    def each(n):\n        for i in range(n): yield i * x\n    return each\n"
                 "def awaits(x):\n    async def task(n):\n        await asyncio.sleep(0)\n        return n * x\n    return task\n"
                 "class Base:\n    def get(self): return 1\n"
                 "def classes(x):\n    class Made(Base):\n        def get(self): return super().get() + x\n    return Made\n"
                 "def recursive(x):\n    def down(n):\n        'Down.'\n        return x if n == 0 else down(n - 1)\n    return down\n"
                 "def argument(result):\n    def inner(culprit): return result, culprit\n    return inner\n"
                 "def fails(x):\n    def inner(n): raise ValueError(x + n)\n    return inner\n"
                 "made = lambda: (counter(2), outer(1), yields(3), awaits(4), classes(5), recursive(6), argument(7), fails(8))\n"
                 "def use(c, o, y, a, k, r, g, f):\n"
                 "    try: f(1)\n    except ValueError as error: failed = str(error)\n"
                 "    return [c(), c(2, 0, unit=3), o(2)(3), list(y(3)), asyncio.run(a(2)), k().get(), r(3), g(8), failed]\n"
                 "old, old_middle = made(), outer(10)(20)\n"
                 "def turn():\n    old_middle(1)\n    return use(*old) + use(*made())\n"
                 "def codes():\n    new = made()\n    return [[id(f.__code__) for f in (*all[:4], all[4].get, *all[5:], all[1](1))] for all in (old, new)] + [id(old_middle.__code__)]\n"
                 "def names():\n    return [f.__qualname__ + repr(f.__defaults__) + str(f.__code__.co_varnames[:f.__code__.co_argcount]) for f in (*old[:4], old[5])] + [recursive(1).__doc__, counter(1).__doc__]")
        asked = ["counter.<locals>.count(by, unit)", "outer.<locals>.middle.<locals>.inner(z)", "yields.<locals>.each", "awaits.<locals>.task", "classes.<locals>.Made.get",
                 "recursive.<locals>.down", "argument.<locals>.inner", "fails.<locals>.inner"]
        for python in interpreters():
            with self.subTest(python):
                child = self.answering(setup, python)
                name = f"{len(self.children)}.pftrace"
                before, codes, names = self.ask(child, "turn()"), self.ask(child, "codes()"), self.ask(child, "names()")
                recorder = self.recorder(child.pid, *("__main__:" + one for one in asked), name=name)
                self.attached(recorder, child)
                now = self.ask(child, "turn()")
                self.assertEqual(now[2:], before[2:])
                self.assertEqual(now[:2], [before[1] + 2, before[1] + 2 + 13], "its own counter goes on")
                self.assertEqual(self.ask(child, "names()"), names)
                self.finish(recorder)
                calls = self.calls(name, "all")
                self.assertEqual({one: calls.get(one.partition("(")[0], 0) for one in asked}, dict(zip(asked, (4, 3, 2 * 4, 2 * 2, 2, 2 * 4, 2, 2))))
                self.assertEqual({key: text for key, text in self.facts(name).items() if key.startswith("missing.python.__main__")}, {})
                self.assertEqual(self.ask(child, "codes()"), codes, "everything is as it was")
                self.assertEqual(self.ask(child, "turn()")[2:], before[2:])
                self.end(child)

    def test_functions_within_functions_within_and_by_two_names(self):
        setup = ("def outer(x):\n    def middle(y):\n        def inner(z): return x + y + z\n        return inner(1) + inner(2)\n    return middle(3)\n"
                 "class A:\n    def run(self):\n        def f(): return 1\n        return f()\nclass B(A): pass\n"
                 "def codes(): return [id(f.__code__) for f in (outer, A.run)]\ndef turn(): return [outer(1), outer(2), A().run(), B().run()]")
        middle, inner = "outer.<locals>.middle", "outer.<locals>.middle.<locals>.inner"
        for python in interpreters():
            for asked in ([middle, inner], [inner, middle], [inner, middle, "A.run.<locals>.f", "B.run.<locals>.f"]):
                with self.subTest(python, asked=asked):
                    child = self.answering(setup, python)
                    name = f"{len(self.children)}.pftrace"
                    before, codes = self.ask(child, "turn()"), self.ask(child, "codes()")
                    recorder = self.recorder(child.pid, *("__main__:" + one for one in asked), name=name)
                    self.attached(recorder, child)
                    self.assertEqual(self.ask(child, "turn()"), before)
                    self.finish(recorder)
                    calls = self.calls(name, "all")
                    self.assertEqual((calls[middle], calls[inner]), (2, 4))
                    if len(asked) > 2:
                        self.assertEqual(calls["A.run.<locals>.f"], 2)
                    self.assertEqual({key: text for key, text in self.facts(name).items() if key.startswith("missing.python.__main__")}, {})
                    self.assertEqual(self.ask(child, "codes()"), codes, "everything is as it was")
                    self.assertEqual(self.ask(child, "turn()"), before)
                    self.end(child)

    def test_of_a_call_that_runs_already_the_functions_that_it_makes_are_told(self):
        setup = "import threading\nmade = []\ndef train(go):\n    while go.wait():\n        go.clear()\n        def step(): return 1\n        made.append(step())\ngo = threading.Event()\nthreading.Thread(target=train, args=(go,), daemon=True).start()\ntime.sleep(0.1)"
        for python in interpreters():
            with self.subTest(python):
                child = self.answering(setup, python)
                name = f"{len(self.children)}.pftrace"
                recorder = self.recorder(child.pid, "__main__:train.<locals>.step", name=name)
                self.attached(recorder, child)
                self.ask(child, "go.set()")
                self.finish(recorder)
                told = self.facts(name).get("missing.python.__main__:train.<locals>.step", "")
                self.assertEqual(told, "" if version_of(python) >= (3, 12) else "is not seen where a call makes it that runs already")
                self.end(child)

    def test_asynchronous_generators(self):
        setup = ("import asyncio, inspect\nseen = []\n"
                 "async def numbers(n, slow=True):\n    try:\n        for i in range(n):\n            if slow: await asyncio.sleep(0)\n            try: got = yield i\n"
                 "            except KeyError: got = yield 'caught'\n            if got: seen.append(got)\n    finally: seen.append('end')\n"
                 "def maker(x):\n    async def each(n):\n        for i in range(n): yield i + x\n    return each\nold = maker(5)\n"
                 "async def all():\n    seen.clear()\n    given = [i async for i in numbers(3)] + [i async for i in old(2)] + [i async for i in maker(6)(2)]\n    one = numbers(9, slow=False)\n"
                 "    given += [await one.asend(None), await one.asend('sent'), await one.athrow(KeyError('x'))]\n    await one.aclose()\n    other = numbers(1, False)\n"
                 "    try: await other.asend(None), await other.athrow(ValueError('raised'))\n    except ValueError as error: given.append(str(error))\n"
                 "    async for i in numbers(5, False): break\n    given.append(inspect.isasyncgenfunction(numbers))\n    return given\n"
                 "async def stubborn():\n    try: yield 1\n    except GeneratorExit: yield 2\n"
                 "async def slow():\n    try:\n        yield 1\n        yield 2\n    finally: await asyncio.sleep(0.001)\n"
                 "async def odd():\n    said = []\n    asyncio.get_running_loop().set_exception_handler(lambda loop, context: said.append(str(context)))\n"
                 "    left, one = slow(), stubborn()\n    await left.asend(None)\n    given = [await one.asend(None), await one.athrow(GeneratorExit())]\n    globals().update(left=left, said=said)\n    return given\n"
                 "def turn(): return asyncio.run(all()), asyncio.run(odd()), said, seen\ndef codes(): return id(numbers.__code__), id(old.__code__), id(maker(1).__code__)")
        counted = set()
        for python in interpreters():
            with self.subTest(python):
                child = self.answering(setup, python)
                name = f"{len(self.children)}.pftrace"
                before, codes = self.ask(child, "turn()"), self.ask(child, "codes()")
                recorder = self.recorder(child.pid, "__main__:numbers(n) as numbers[{n}]", "__main__:maker.<locals>.each", "__main__:stubborn", "__main__:slow", name=name)
                self.attached(recorder, child)
                self.assertEqual(self.ask(child, "turn()"), before)
                self.finish(recorder)
                calls = self.calls(name, "all")
                counted.add((calls["numbers"], calls["maker.<locals>.each"], calls["step: numbers[3]"], calls["step: numbers[9]"]))
                self.assertEqual(self.ask(child, "turn()"), before)
                self.assertEqual(self.ask(child, "codes()"), codes, "everything is as it was")
                self.end(child)
        self.assertEqual(len(counted), 1, counted)

    def test_an_outer_function_that_is_watched_itself(self):
        setup = "def maker(x):\n    def inner(n): return n + x\n    return inner\nold = maker(1)\ndef turn(): return old(1), maker(2)(3)"
        for python in interpreters():
            for asked in (["maker", "maker.<locals>.inner"], ["maker.<locals>.inner", "maker", "maker.<locals>.inner"]):
                with self.subTest(python, asked=asked):
                    child = self.answering(setup, python)
                    name = f"{len(self.children)}.pftrace"
                    codes = self.ask(child, "id(maker.__code__), id(old.__code__)")
                    recorder = self.recorder(child.pid, *("__main__:" + one for one in asked), name=name)
                    self.attached(recorder, child)
                    self.assertEqual(self.ask(child, "turn()"), [2, 5])
                    self.finish(recorder)
                    calls = self.calls(name, "all")
                    self.assertEqual((calls["maker"], calls["maker.<locals>.inner"]), (1, 2))
                    self.assertEqual(self.ask(child, "id(maker.__code__), id(old.__code__)"), codes)
                    self.end(child)

    def test_children_that_end_before_they_are_attached_to_are_counted(self):
        if os.geteuid() != 0:
            self.skipTest("root alone is told of each child")
        child = self.answering("import os\ndef work(n): return n\ndef fork():\n    pid = os.fork()\n    if pid == 0:\n        time.sleep(0.15)\n        os._exit(0)\n    return os.waitpid(pid, 0)[1]", "/usr/bin/python3")
        recorder = self.recorder(child.pid, "__main__:work", name="forks.pftrace", collect="python,sched")
        self.attached(recorder, child)
        self.assertEqual(self.ask(child, "[fork() for _ in range(4)]"), [0] * 4)
        self.finish(recorder)
        self.assertEqual(self.facts("forks.pftrace")["missing.python.processes"], "4 ended, or the recording did, before they could be attached to")
        self.end(child)

    def test_what_is_looked_at_is_as_it_was_and_recurses_as_deep(self):
        setup = ("def deep(n): return 0 if n == 0 else 1 + deep(n - 1)\n"
                 "def odd(a, /, result, *, enter=3, **rest): return a\n"
                 "def kinds(a, b=2, /, *, original=4): return [a, b, original]\n"
                 "def signatures(): return [str(inspect.signature(f)) for f in (odd, kinds)]\n"
                 "def turn(): return [odd(1, 2, x=5), odd(1, result=2, enter=4), *kinds(1), *kinds(1, 3, original=5)]\n"
                 "def to_the_ground(n):\n    sys.setrecursionlimit(100000)\n    return deep(n)")
        for python in interpreters():
            with self.subTest(python):
                child = self.answering(setup, python)
                name = f"{len(self.children)}.pftrace"
                before = self.ask(child, "[signatures(), turn()]")
                recorder = self.recorder(child.pid, "__main__:deep", "__main__:odd(enter, x)", "__main__:kinds(a, b, original)", name=name)
                self.attached(recorder, child)
                now = self.ask(child, "[signatures(), turn()]")
                self.assertEqual(now, before)
                # Before 3.11 each call of Python code takes of the stack of its thread, watched or not.
                depth = 2000 if version_of(python) < (3, 11) else 40_000
                self.assertEqual(self.ask(child, f"to_the_ground({depth})"), depth)
                self.finish(recorder)
                self.assertEqual(self.ask(child, "signatures()"), before[0])
                self.assertEqual(self.calls(name, "all")["kinds"], 2)
                self.end(child)

    def test_a_number_that_calls_the_function_takes_it_once(self):
        setup = ("class Queue:\n    @property\n    def size(self): return self.count() and 7\n    def count(self): return 1\n"
                 "queue = Queue()\ndef turn(): return [queue.count() for _ in range(5)][-1]")
        for python in interpreters():
            with self.subTest(python):
                child = self.answering(setup, python)
                name = f"{len(self.children)}.pftrace"
                recorder = self.recorder(child.pid, "__main__:Queue.count(self.size)", name=name)
                self.attached(recorder, child)
                self.ask(child, "turn()")
                self.finish(recorder)
                self.assertEqual(self.calls(name, "all")["Queue.count"], 5)
                self.end(child)

    def test_functions_are_as_they_were_when_torch_compiles(self):
        """Before Python 3.12; a stand-in for its compiler."""
        setup = ("import types\n"
                 "package, module = types.ModuleType('torch._dynamo'), types.ModuleType('torch._dynamo.eval_frame')\n"
                 "class OptimizeContext:\n    def __init__(self, backend): module.cached_backends[id(backend)] = backend\n"
                 "module.cached_backends, module.OptimizeContext = {0: None}, OptimizeContext\n"
                 "def add(): sys.modules.update({package.__name__: package, module.__name__: module})\n"
                 "def work(n): return n\n"
                 "codes = [work.__code__, OptimizeContext.__init__.__code__]\n"
                 "def same(): return [work.__code__ is codes[0], OptimizeContext.__init__.__code__ is codes[1]]")
        for python in interpreters():
            if version_of(python) >= (3, 12):
                continue
            with self.subTest(python):
                child = self.answering(setup, python)
                recorder = self.recorder(child.pid, "__main__:work")
                self.attached(recorder, child)
                self.ask(child, "[work(n) for n in range(5)]")
                self.ask(child, "add()")
                self.wait_until(lambda: self.ask(child, "same()") == [False, False], "it is not looked at")
                self.assertEqual(self.ask(child, "[OptimizeContext('eager') and None, *same(), work(5)]"), [None, True, True, 5])
                self.finish(recorder)
                self.assertEqual(self.calls()["work"], 5)
                self.assertIn("torch.compile works", self.facts()["missing.python.__main__:work"])
                self.assertEqual(self.ask(child, "same()"), [True, True])
                recorder = self.recorder(child.pid, "__main__:work", name="again.pftrace")
                self.attached(recorder, child)
                self.assertEqual(self.ask(child, "[*same(), work(5)]"), [True, True, 5])
                self.finish(recorder)
                self.assertIn("torch.compile works", self.facts("again.pftrace")["missing.python.__main__:work"])
                self.end(child)
                for name in ("run.pftrace", "again.pftrace"):
                    os.remove(self.path(name))

    def test_a_call_that_is_older_than_the_recording_is_none_of_it(self):
        setup = "def first(n):\n    while True: yield n\ndef second(n): return n\nkept = []"
        for python in interpreters():
            with self.subTest(python):
                child = self.answering(setup, python)
                recorder = self.recorder(child.pid, "__main__:first", name="old.pftrace")
                self.attached(recorder, child)
                self.ask(child, "[kept.append(first(1)), next(kept[0])][1]")
                self.finish(recorder)
                name = f"{len(self.children)}.pftrace"
                recorder = self.recorder(child.pid, "__main__:second", name=name)
                self.attached(recorder, child)
                self.ask(child, "[next(kept[0]) for _ in range(7)][0] + second(1)")
                self.finish(recorder)
                os.remove(self.path("old.pftrace"))
                self.assertEqual(self.calls(name), {"second": 1})
                self.end(child)

    def test_threads_exact_integers_and_collections(self):
        setup = ("import enum\nclass Kind(enum.IntEnum):\n    A = 5\nclass Own(int): pass\n"
                 "def work(a): return a\n"
                 "def in_threads():\n    threads = [threading.Thread(target=lambda: [work(1) for _ in range(100)]) for _ in range(8)]\n"
                 "    [t.start() for t in threads]; [t.join() for t in threads]; return 800\n"
                 "def values(): return [int(work(v)) for v in (7, True, Kind.A, Own(9))]")
        for python in interpreters():
            with self.subTest(python):
                child = self.answering(setup, python)
                name = f"{len(self.children)}.pftrace"
                recorder = self.recorder(child.pid, "__main__:work(a) as call[{a}]", name=name)
                self.attached(recorder, child)
                self.assertEqual(self.ask(child, "values()"), [7, 1, 5, 9])
                self.ask(child, "in_threads()")
                self.ask(child, "[gc.collect(2), gc.collect(0)] and 0")
                self.finish(recorder)
                calls = self.calls(name, "all")
                self.assertEqual([calls.get(f"step: call[{value}]", 0) for value in (7, 1, 5, 9, "?")], [1, 800, 0, 0, 3])
                self.assertGreaterEqual(calls.get("gc generation 2", 0), 1)
                self.assertGreaterEqual(calls.get("gc generation 0", 0), 1)
                recording = pftrace.Recording(self.path(name))
                self.assertEqual(sum(name == "work" for _, name, *_ in recording.slices), 804)
                self.assertEqual(self.facts(name)["cost.python.dropped"], "0")
                self.end(child)

    def test_a_frame_that_runs_already(self):
        """Its end says nothing of when it began."""
        setup = ("go = threading.Event()\ndef long(n):\n    go.wait(); return work(n)\ndef work(n): return n\n"
                 "thread = threading.Thread(target=long, args=(1,)); thread.start()")
        for python in interpreters():
            with self.subTest(python):
                child = self.answering(setup, python)
                name = f"{len(self.children)}.pftrace"
                recorder = self.recorder(child.pid, "__main__:long", "__main__:work", name=name)
                self.attached(recorder, child)
                self.ask(child, "[go.set(), thread.join(), long(2)][2]")
                self.finish(recorder)
                self.assertEqual(self.calls(name), {"long": 1, "work": 2})
                self.assertLess(max(row["max_ns"] for row in self.rows(name)), 1e9)
                self.end(child)

    def test_another_tool_of_sys_monitoring_keeps_its_events(self):
        setup = ("m, seen = sys.monitoring, []\nm.use_tool_id(4, 'other')\ndef work(n): return n\n"
                 "m.register_callback(4, m.events.PY_START, lambda code, at: seen.append(code.co_name))\nm.set_local_events(4, work.__code__, m.events.PY_START)\n"
                 "def turn(): return [len(seen), work(1), len(seen)]\n"
                 "def others(): return [t for t in map(m.get_tool, range(6)) if t]")
        child = self.answering(setup, self.newest())
        self.assertEqual(self.ask(child, "turn()"), [0, 1, 1])
        recorder = self.recorder(child.pid, "__main__:work")
        self.attached(recorder, child)
        self.assertEqual(self.ask(child, "turn()"), [1, 1, 2])
        self.finish(recorder)
        self.assertEqual(self.ask(child, "turn()"), [2, 1, 3])
        self.assertEqual(self.ask(child, "others()"), ["other"])
        self.assertEqual(self.calls(), {"work": 1})
        self.end(child)

    def test_threads_of_a_container_that_have_ended(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to make a namespace")
        with open(self.path("program.py"), "w", encoding="utf-8") as file:
            file.write(ANSWERS % ("def work(n): return n\ndef turn():\n    for _ in range(300):\n        t = threading.Thread(target=work, args=(1,)); t.start(); t.join()\n"
                                  "    return work(2)"))
        outer = self.start(["unshare", "--fork", "--pid", "--mount-proc", sys.executable, self.path("program.py")])
        if outer.stdout.readline() != "ready\n":
            self.skipTest("no namespaces here")
        with open(f"/proc/{outer.pid}/task/{outer.pid}/children", encoding="utf-8") as children:
            pid = int(children.read().split()[0])
        self.addCleanup(subprocess.run, ["kill", "-9", str(pid)], check=False, capture_output=True)
        recorder = self.recorder(pid, "__main__:work")
        inner = argparse.Namespace(pid=pid)
        self.attached(recorder, inner)
        self.ask(outer, "turn()")
        self.finish(recorder)
        self.assertEqual(self.calls()["work"], 301)
        self.assertEqual(self.facts()["cost.python.dropped"], "0")
        self.end(outer)


if __name__ == "__main__":
    attaching.main()
