#!/usr/bin/env python3
"""What wheels and the sdist of the Python package are made of, short of building one (scripts/trial-wheel does that).

    python_build_test.py --env BUILD_DIR/python --source SOURCE_DIR [unittest options]
"""

import argparse
import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

ARGS = argparse.Namespace(env="build/python", source=".")
# Folders of the checkout of which the sdist holds every file.
WHOLE = ("bpf", "cmake", "include", "python/src", "src", "web")


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, **options)


def text(*path):
    with open(os.path.join(ARGS.source, *path), encoding="utf-8") as file:
        return file.read()


class Sdist(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="culprit-sdist-")
        cls.addClassCleanup(cls.folder.cleanup)
        why = os.path.join(ARGS.env, "why")
        if os.path.exists(why):
            with open(why, encoding="utf-8") as file:
                cls.why = file.read().strip()
            return
        cls.why = None
        build = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
        done = run(os.path.join(ARGS.env, "venv", "bin", "python"), "-c", build, cls.folder.name, cwd=os.path.join(ARGS.source, "python"))
        assert done.returncode == 0, done.stdout + done.stderr
        path, = os.listdir(cls.folder.name)
        cls.root = path[:-len(".tar.gz")]
        with tarfile.open(os.path.join(cls.folder.name, path)) as archive:
            cls.members = archive.getmembers()
            cls.about = archive.extractfile(cls.root + "/PKG-INFO").read().decode()

    def setUp(self):
        if self.why is not None:
            self.skipTest(self.why)

    def names(self):
        return {member.name[len(self.root) + 1:] for member in self.members}

    def test_it_holds_every_tracked_source_and_no_other_file(self):
        listed = run("git", "-C", ARGS.source, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        if listed.returncode != 0:
            self.skipTest("not a checkout of git: what is tracked is unknown")
        tracked = [path for path in listed.stdout.split("\0") if path and os.path.exists(os.path.join(ARGS.source, path))]
        expected = {"project/" + path for path in tracked if path.startswith(tuple(folder + "/" for folder in WHOLE))}
        expected |= {path[len("python/"):] for path in tracked if path.startswith("python/culprit/")}
        expected |= {"project/CMakeLists.txt", "project/LICENSE", "project/python/CMakeLists.txt", "project/scripts/build-web", "PKG-INFO", "README.md", "pyproject.toml"}
        self.assertEqual(self.names(), expected)

    def test_every_member_is_a_file_inside_it(self):
        for member in self.members:
            self.assertTrue(member.isfile(), member.name)
            self.assertTrue(member.name.startswith(self.root + "/"), member.name)
            self.assertNotIn("..", member.name.split("/"))

    def test_version_is_that_of_the_program(self):
        version = re.search(r"^project\(culprit VERSION (\S+)", text("CMakeLists.txt"), re.M).group(1)
        self.assertEqual(self.root, f"culprit-{version}")
        self.assertIn(f"\nVersion: {version}\n", self.about)
        self.assertIn(f'\n__version__ = "{version}"\n', text("python", "culprit", "__init__.py"))

    def test_no_source_names_a_file_that_only_a_checkout_has(self):
        names = self.names()
        for path in ("CMakeLists.txt", "bpf/CMakeLists.txt", "src/CMakeLists.txt", "cmake/web.cmake", "python/CMakeLists.txt"):
            for named in re.findall(r"\$\{CMAKE_SOURCE_DIR\}/([\w./-]+)", text(path)):
                inside = "project/" + named.rstrip("/")
                self.assertTrue(inside in names or any(name.startswith(inside + "/") for name in names), f"{path} names {named}")


class Configuration(unittest.TestCase):
    def configured(self, *options, **environment):
        with tempfile.TemporaryDirectory(prefix="culprit-configured-") as folder:
            done = run("cmake", "-S", ARGS.source, "-B", folder, "-G", "Ninja", "-DCULPRIT_TESTS=OFF", *options, env={**os.environ, **environment})
        self.assertNotEqual(done.returncode, 0)
        return " ".join(done.stderr.split())

    def test_missing_libraries_are_named_by_their_packages(self):
        said = self.configured("-DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON", PKG_CONFIG_LIBDIR=os.devnull)
        packages = said[said.index("apt-get install "):].split()
        for package in ("libfmt-dev", "libcli11-dev", "libisal-dev", "libzstd-dev", "libprotobuf-dev", "libbpf-dev"):
            self.assertIn(package, packages)
        self.assertNotIn("libsimdjson-dev", packages)

    def test_missing_headers_of_python_are_named_beside_the_libraries(self):
        said = self.configured("-DCULPRIT_PYTHON=ON", f"-DPython_EXECUTABLE={sys.executable}", "-DPython_INCLUDE_DIR=/nowhere", "-DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON")
        packages = said[said.index("apt-get install "):].split()
        for package in ("libfmt-dev", "python3-dev"):
            self.assertIn(package, packages)

    def test_what_is_asked_for_is_what_the_setup_installs(self):
        asked = set(re.findall(r"culprit_(?:found|pkg_config|header)\(([a-z0-9-]+) ", text("cmake", "dependencies.cmake")))
        self.assertGreater(len(asked), 20)
        done = run(os.path.join(ARGS.source, "scripts", "deps"), "--list", "build")
        self.assertEqual(asked - set(done.stdout.split()), set())

    def test_free_threaded_python_is_refused(self):
        with tempfile.TemporaryDirectory(prefix="culprit-free-") as folder:
            with open(os.path.join(folder, "sitecustomize.py"), "w", encoding="utf-8") as file:
                file.write("import sysconfig\nsysconfig.get_config_vars()['Py_GIL_DISABLED'] = 1\n")
            said = self.configured("-DCULPRIT_PYTHON=ON", f"-DPython_EXECUTABLE={sys.executable}", PYTHONPATH=folder)
        self.assertIn("does not support free-threaded Python", said)


class Wheel(unittest.TestCase):
    def test_versions_of_tools_are_those_of_the_build(self):
        pinned = re.findall(r'"((?:scikit-build-core|nanobind)==[^"]+)"', text("python", "pyproject.toml"))
        self.assertEqual(len(pinned), 2)
        for name in ("requirements-test.txt", "requirements-wheel.txt"):
            for line in text("python", name).splitlines():
                if line.startswith(("scikit-build-core", "nanobind")):
                    self.assertIn(line, pinned, name)

    def test_every_package_of_the_environment_is_pinned(self):
        """And none that is needed is missing."""
        python = os.path.join(ARGS.env, "venv", "bin", "python")
        if not os.path.exists(os.path.join(ARGS.env, "venv", ".made")):
            self.skipTest("there is no environment: scripts/python-env")

        def pins(lines):
            return {(name.lower().replace("_", "-"), version) for name, version in re.findall(r"(?m)^([A-Za-z0-9_.-]+)==(\S+)$", lines)}

        pip = (python, "-m", "pip", "--disable-pip-version-check")
        installed = {pin for pin in pins(run(*pip, "list", "--format=freeze").stdout) if pin[0] not in ("pip", "setuptools")}
        self.assertGreater(len(installed), 20)
        self.assertEqual(installed, pins(text("python", "requirements-test.txt")))
        checked = run(*pip, "check")
        self.assertEqual(checked.returncode, 0, checked.stdout)

    def test_a_library_without_its_licence_is_found(self):
        loader = importlib.machinery.SourceFileLoader("wheel_licences", os.path.join(ARGS.source, "scripts", "wheel-licences"))
        spec = importlib.util.spec_from_loader(loader.name, loader)
        checks = importlib.util.module_from_spec(spec)
        sys.dont_write_bytecode = True
        loader.exec_module(checks)
        names = [f"culprit/licences/{package}.txt" for package in [*checks.INSIDE, "libfmt-dev", "libssl3", "libprotobuf-dev"]]
        names += [f"culprit.libs/lib{name}" for name in ("fmt-0d5b0fd2.so.9.1.0", "crypto-c1e7d8a0.so.3", "protobuf-lite-36e4e5d8.so.32.0.12")]
        self.assertEqual(checks.missing(names), [])
        more = "culprit.libs/libnovel-0.11-1a2b3c4d.so.1"
        self.assertEqual(checks.missing([*names, more]), [(more, "libnovel-dev")])
        self.assertEqual(checks.missing(names[1:]), [("culprit", "culprit")])
        texts = {"culprit/licences/libelf-dev.txt": "see /usr/share/common-licenses/GPL-3 and\n`/usr/share/common-licenses/LGPL-2.1'.", "culprit/licences/common/GPL-3.txt": "text"}
        self.assertEqual(checks.referred(texts), [("culprit/licences/libelf-dev.txt", "LGPL-2.1")])
        self.assertEqual(checks.referred({**texts, "culprit/licences/common/LGPL-2.1.txt": "text"}), [])

    def test_texts_that_licences_refer_to_are_installed(self):
        """As the build that the tests run in would install them."""
        script = os.path.join(ARGS.env, "build", "python", "cmake_install.cmake")
        if not os.path.exists(script):
            self.skipTest("the module was not built")
        with open(script, encoding="utf-8") as file:
            installed = file.read()
        if "libelf-dev.txt" not in installed or not os.path.exists("/usr/share/doc/libelf-dev/copyright"):
            self.skipTest("not a Debian")
        for name in ("GPL-2", "GPL-3", "LGPL-2.1", "LGPL-3", "Apache-2.0"):
            self.assertIn(f'RENAME "{name}.txt"', installed)

    def test_the_licence_of_what_nanobind_compiles_in_is_installed(self):
        """Cut out of a header, as text."""
        made = os.path.join(ARGS.env, "build", "python")
        if not os.path.exists(os.path.join(made, "cmake_install.cmake")):
            self.skipTest("the module was not built")
        licence = text(os.path.join(made, "robin-map.txt"))
        self.assertRegex(licence, r"\AMIT License\n\nCopyright \(c\) \d+ Thibaut Goetghebuer-Planchon")
        self.assertTrue(licence.endswith("OTHER DEALINGS IN THE\nSOFTWARE.\n"), licence)
        self.assertNotIn("*", licence)
        self.assertIn('/robin-map.txt"', text(os.path.join(made, "cmake_install.cmake")))


class Environment(unittest.TestCase):
    """scripts/python-env with one small package, in a tree of its own: what is a skip, and what an error."""

    PIN = "nanobind==2.9.2\n"

    def setUp(self):
        if sys.version_info < (3, 11):
            self.skipTest("the environment needs Python 3.11")
        folder = tempfile.TemporaryDirectory(prefix="culprit-env-")
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        for name in ("scripts", "python/culprit", "build", "tools", "wheels"):
            os.makedirs(self.at(name))
        for name in ("test", "hta"):
            self.write(f"python/requirements-{name}.txt", "")
        for name in ("__init__.py", "_culprit.pyi", "py.typed"):
            self.write("python/culprit/" + name, "")
        self.write("scripts/python-env", text("scripts", "python-env"))
        self.write("build/culprit", "")

    def at(self, *path):
        return os.path.join(self.root, *path)

    def write(self, name, content):
        with open(self.at(name), "w", encoding="utf-8") as file:
            file.write(content)

    def made(self, cmake="exit 1", python=sys.executable, **environment):
        """`cmake` is what the tool of that name does."""
        self.write("tools/cmake", f"#!/bin/sh\n{cmake}\n")
        os.chmod(self.at("tools/cmake"), 0o755)
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
        settings = {"PATH": f"{self.at('tools')}:{os.environ['PATH']}", "PYTHON": python, "PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0", "PIP_TIMEOUT": "2"}
        return run("bash", self.at("scripts/python-env"), self.at("build"), env={**clean, **settings, **environment})

    def why(self):
        return os.path.exists(self.at("build/python/why"))

    def test_a_registry_that_cannot_be_reached_is_a_skip(self):
        self.write("python/requirements-test.txt", self.PIN)
        done = self.made(PIP_INDEX_URL="http://127.0.0.1:9/simple")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("cannot be reached", done.stdout)
        self.assertTrue(self.why())

    def test_a_pin_that_does_not_exist_is_an_error(self):
        self.write("python/requirements-test.txt", "nanobind==99.9.9\n")
        done = self.made(PIP_NO_INDEX="1", PIP_FIND_LINKS=self.at("wheels"))
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("could not install", done.stderr)
        self.assertFalse(self.why())

    def test_a_module_that_cannot_be_configured_is_an_error(self):
        done = self.made(PYTHONPATH=self.fake_nanobind())
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("cannot be configured", done.stderr)
        self.assertFalse(self.why())

    def test_another_python_gets_an_environment_of_its_own(self):
        built = f"mkdir -p {self.at('build/python/build/python')}; touch {self.at('build/python/build/python/_culprit.so')}"
        paths = {"PYTHONPATH": self.fake_nanobind()}
        self.assertEqual(self.made(built, **paths).returncode, 0)
        kept = self.at("build/python/venv/kept")
        with open(kept, "w", encoding="ascii"):
            pass
        self.assertEqual(self.made(built, **paths).returncode, 0)
        self.assertTrue(os.path.exists(kept))
        self.write("tools/python", f"#!/bin/sh\n[ \"$1\" = -c ] && case \"$2\" in *base_prefix*) echo another; exit;; esac\nexec {sys.executable} \"$@\"\n")
        os.chmod(self.at("tools/python"), 0o755)
        self.assertEqual(self.made(built, self.at("tools/python"), **paths).returncode, 0)
        self.assertFalse(os.path.exists(kept))

    def fake_nanobind(self):
        self.write("tools/nanobind.py", "print('/nanobind')\n")
        return self.at("tools")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", required=True)
    parser.add_argument("--source", required=True)
    known, rest = parser.parse_known_args()
    ARGS.env, ARGS.source = os.path.abspath(known.env), os.path.abspath(known.source)
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
