#!/usr/bin/env python3
"""The ready-made sets of functions against the sources of the programs that they are for (scripts/ready-set-sources).

    ready_sets_test.py --sets FOLDER --sources FOLDER [unittest options]

Every module, class, method and path of an argument that a set names has to exist in each of these versions, and the numbers of modes have to mean
what the set says they do. Sources are read, never run.
"""

import argparse
import ast
import glob
import os
import re
import sys
import tempfile
import textwrap
import unittest

ARGS = argparse.Namespace(sets="src/record/python/sets", sources=".cache/ready-sets")
FEWEST_VERSIONS = 4
LINE = re.compile(r"(?P<module>[\w.]+):(?P<name>[\w.<>]+)(?:\((?P<numbers>[^)]*(?:\([^)]*\)[^)]*)*)\))?(?: requests [\w.,=/-]+(?: when \w+)?)?(?: (?:as|says) (?P<step>.*?))?(?: when \w+)?$")
NUMBER = re.compile(r"(?:(\w+)=)?(?:(?:len|sum|ones|ns)\()?([\w.]+(?:\[\][\w.]+)?)\)?$")


# Attributes of which the sources do not tell the type: what they most often are.
UNTYPED = {("_BaseDataLoaderIter", "_index_sampler"): ("torch.utils.data.sampler", "BatchSampler")}


class Missing(Exception):
    pass


class Sources:
    """The classes of one version of a package."""

    def __init__(self, folder):
        self.folder = folder
        self.modules = {}

    def module(self, name):
        if name not in self.modules:
            base = os.path.join(self.folder, *name.split("."))
            path = next((p for p in (base + ".py", os.path.join(base, "__init__.py")) if os.path.exists(p)), None)
            if path is None:
                self.modules[name] = None
            else:
                with open(path, encoding="utf-8") as file:
                    self.modules[name] = ast.parse(file.read())
        return self.modules[name]

    def find_class(self, module, name, seen=()):
        """(module, class) by a name that a module uses; None when it comes from elsewhere."""
        tree = self.module(module)
        if tree is None or (module, name) in seen:
            return None
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name == name:
                return module, node
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and any((alias.asname or alias.name) == name for alias in node.names):
                real = next(alias.name for alias in node.names if (alias.asname or alias.name) == name)
                found = self.find_class(node.module, real, (*seen, (module, name)))
                if found:
                    return found
        return None

    def bases(self, module, of):
        for base in of.bases:
            base = base.value if isinstance(base, ast.Subscript) else base
            if isinstance(base, ast.Name):
                found = self.find_class(module, base.id)
                if found:
                    yield found

    def method(self, module, of, name):
        """(module, function) of a class or what it inherits from."""
        for node in of.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
                return module, node
        for base_module, base in self.bases(module, of):
            found = self.method(base_module, base, name)
            if found:
                return found
        return None

    def attribute(self, module, of, name):
        """(module, annotation or None) of an attribute of a class."""
        for node in ast.walk(of):
            if isinstance(node, ast.AnnAssign):
                target = node.target
                if isinstance(target, ast.Name) and target.id == name:
                    return module, node.annotation
                if isinstance(target, ast.Attribute) and target.attr == name:
                    return module, node.annotation
        for node in ast.walk(of):
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Attribute) and t.attr == name and isinstance(t.value, ast.Name) and t.value.id == "self"
                                                    for t in node.targets):
                made = node.value.func if isinstance(node.value, ast.Call) else None
                made = made.value if isinstance(made, ast.Attribute) else made  # Class.made_from(...)
                return module, made if isinstance(made, ast.Name) else None
        for node in of.body:
            if isinstance(node, ast.FunctionDef) and node.name == name and any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list):
                return module, node.returns
        for base_module, base in self.bases(module, of):
            found = self.attribute(base_module, base, name)
            if found:
                return found
        return None


def class_names(annotation):
    """Names in an annotation that may be those of classes: of `Optional["A"] | B` A and B."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    return [node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)] if annotation is not None else []


ENUMS = {"Enum", "IntEnum", "StrEnum", "IntFlag"}


def is_enum(of):
    return any(isinstance(base, ast.Name) and base.id in ENUMS for base in of.bases)


def enum_values(of):
    """Members of an enumeration that counts itself, from 1 on."""
    values, last = {}, 0
    for node in of.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            is_auto = isinstance(node.value, ast.Call)
            last = last + 1 if is_auto else node.value.value
            values[node.targets[0].id] = last
    return values


def follow(sources, module, annotation, path):
    """The class in which a path ends, or None where its last part is no object of a known class. Raises Missing."""
    for at, part in enumerate(path):
        found = None
        for name in class_names(annotation):
            holder = sources.find_class(module, name)
            if holder and is_enum(holder[1]) and part == "value":
                return holder
            if holder:
                found = found or sources.attribute(*holder, part)
            if holder and found and (name, part) in UNTYPED:
                found = (UNTYPED[name, part][0], ast.Name(id=UNTYPED[name, part][1]))
        if found is None:
            raise Missing(f"{'.'.join(path[:at + 1])} is in none of {class_names(annotation)}")
        module, annotation = found
    return None


def function_of(sources, module, name):
    """(module, function) of a function of a module, or of a method of a class in it or of what that inherits from, or of one that such a one makes."""
    outer, inside, inner = name.rpartition(".<locals>.")
    if inside:
        home, node = function_of(sources, module, outer)
        found = next((n for n in ast.walk(node) if isinstance(n, ast.FunctionDef) and n.name == inner), None)
        if found is None:
            raise Missing(f"{outer} makes no {inner}")
        return home, found
    of, _, method = name.rpartition(".")
    if not of:
        found = next((node for node in sources.module(module).body if isinstance(node, ast.FunctionDef) and node.name == name), None)
        if found is None:
            raise Missing(f"no function {name} in {module}")
        return module, found
    holder = sources.find_class(module, of)
    if holder is None:
        raise Missing(f"no class {of} in {module}")
    found = sources.method(*holder, method)
    if found is None:
        raise Missing(f"no method {name} in {module}")
    return found


def check_line(sources, text):
    """What a line names that does not exist raises Missing."""
    line = LINE.match(text)
    if not line:
        raise Missing(f"cannot be read: {text}")
    module = line["module"]
    if sources.module(module) is None:
        raise Missing(f"no module {module}")
    home, node = function_of(sources, module, line["name"])
    arguments = {a.arg: a.annotation for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    enums = {}
    for number in [part.strip() for part in (line["numbers"] or "").split(",") if part.strip()]:
        parsed = NUMBER.match(number)
        if not parsed:
            raise Missing(f"cannot be read: {number}")
        argument, *path = parsed[2].replace("[]", "").split(".")
        if argument not in arguments:
            raise Missing(f"{line['name']} has no argument {argument}")
        annotation = ast.Name(id=line["name"].split(".")[0]) if argument == "self" else arguments[argument]
        end = follow(sources, home, annotation, path)
        if end is not None:
            enums[parsed[1] or parsed[2]] = enum_values(end[1])
    for name, choices in re.findall(r"{(\w+):([^}]*)}", line["step"] or ""):
        for value, label in re.findall(r"(?:^|,)(\d+)=(\w+)", choices):
            if name in enums and enums[name].get(label) != int(value):
                raise Missing(f"{name} {value} is not {label}")


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip() and not line.startswith("#")]


class ReadySets(unittest.TestCase):
    def check(self, program, library=""):
        versions = sorted(glob.glob(os.path.join(ARGS.sources, program + "-*")))
        if len(versions) < FEWEST_VERSIONS:
            self.skipTest(f"the sources of {program} are not there (scripts/ready-set-sources)")
        lines = lines_of(os.path.join(ARGS.sets, library, program + ".txt"))
        self.assertTrue(lines)
        for folder in versions:
            sources = Sources(folder)
            for line in lines:
                with self.subTest(version=os.path.basename(folder), line=line):
                    try:
                        check_line(sources, line)
                    except Missing as missing:
                        self.fail(str(missing))

    def test_sglang(self):
        self.check("sglang")

    def test_vllm(self):
        self.check("vllm")

    def test_torch(self):
        self.check("torch", library="libraries")

    def test_transformers(self):
        self.check("transformers", library="libraries")


class Checker(unittest.TestCase):
    """That what does not exist is found."""

    SOURCE = '''
        from enum import IntEnum, auto
        class Mode(IntEnum):
            PREFILL = auto()
            DECODE = auto()
        class Base:
            def inherited(self, batch: "Batch"): pass
        class Batch:
            mode: Mode = None
            reqs: "list[Request]" = ()
            def __init__(self): self.size = 1
        class Request:
            @property
            def length(self) -> int: return 1
            def end(self): pass
        class Runner(Base):
            speed: float = 0.0
            def run(self, batch: Batch | None, count):
                def inner(): pass
        def start(runner: Runner): pass
        '''

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="culprit-sets-")
        self.addCleanup(folder.cleanup)
        with open(os.path.join(folder.name, "app.py"), "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(self.SOURCE))
        self.sources = Sources(folder.name)

    def test_what_exists_is_found(self):
        for line in ["app:Runner.run", "app:Runner.run.<locals>.inner as Runner.step", "app:Runner.inherited(len(batch.size))", "app:start(v=ns(runner.speed))", "app:Runner.run(v=ns(self.speed)) requests a=v..now,b=v..now-v/n",
                      "app:Runner.run(count, n=len(batch.size), sum(batch.mode.value))", "app:Runner.run(sum(batch.reqs[].length))",
                     "app:Runner.run(m=batch.mode.value) as step[{m:1=PREFILL x,2=DECODE}] when m"]:
            with self.subTest(line):
                check_line(self.sources, line)

    def test_what_does_not_exist_is_missing(self):
        for line in ["other:Runner.run", "app:Walker.run", "app:Runner.walk", "app:Runner.run.<locals>.outer", "app:Runner.run(batches)", "app:Runner.run(batch.sizes)",
                     "app:Runner.run(batch.mode.number)", "app:Runner.run(count.size)", "app:stop", "app:Runner.run(sum(batch.reqs[].end))", "app:Runner.run(self.slow)", "app:Runner.run(m=batch.mode.value) as step[{m:2=PREFILL}]",
                     "app Runner"]:
            with self.subTest(line), self.assertRaises(Missing):
                check_line(self.sources, line)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", required=True)
    parser.add_argument("--sources", required=True)
    known, rest = parser.parse_known_args()
    ARGS.sets, ARGS.sources = known.sets, known.sources
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
