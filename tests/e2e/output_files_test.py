#!/usr/bin/env python3
"""The rule of -o (core/output_file.h), on every verb that writes a file for its user.

    output_files_test.py --bin BUILD_DIR [unittest options]
"""

import argparse
import os
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ARGS = argparse.Namespace(bin="build")
FINE, USAGE, INPUT, ENVIRONMENT = 0, 2, 3, 4
LIMIT = 60
PRIVATE = ("export", "export to Perfetto", "record")  # new files are the user's alone


def setUpModule():
    os.umask(0o022)
    Case.folder = tempfile.TemporaryDirectory(prefix="culprit-output-")
    trace = os.path.join(Case.folder.name, "trace.json")
    done = run("culprit-tracegen", "-q", "--steps", "12", "--layers", "2", "--seed", "1", "-o", trace)
    assert done.returncode == FINE, done.stderr
    Case.trace = trace


def tearDownModule():
    Case.folder.cleanup()


def run(program, *arguments, **options):
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run([os.path.join(ARGS.bin, program), *arguments], text=True, timeout=LIMIT, check=False, **options)


def content(path):
    with open(path, "rb") as file:
        return file.read()


class Case(unittest.TestCase):
    folder = trace = None

    def setUp(self):
        self.dir = tempfile.mkdtemp(dir=self.folder.name)

    def at(self, name):
        return os.path.join(self.dir, name)

    def put(self, name, text="old", mode=0o644):
        with open(self.at(name), "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(self.at(name), mode)
        return self.at(name)

    def mode(self, path):
        return stat.S_IMODE(os.lstat(path).st_mode)

    def writers(self):
        """What writes to one file: name, ending of the file, command line before -o."""
        trace = self.trace
        return (
            ("info", ".json", ["culprit", "info", trace]),
            ("top", ".csv", ["culprit", "top", trace]),
            ("cycles", ".md", ["culprit", "cycles", trace]),
            ("kernels", ".json", ["culprit", "kernels", trace]),
            ("diff", ".json", ["culprit", "diff", trace, trace]),
            ("export", ".json", ["culprit", "export", trace]),
            ("export to Perfetto", ".pftrace", ["culprit", "export", trace]),
            ("inject", ".json", ["culprit", "inject", "--list"]),
            ("record", ".pftrace", ["culprit", "record", "-q", "--collect", "environment"]),
            ("culprit-tracegen", ".json", ["culprit-tracegen", "-q", "--steps", "2", "--truth", "/dev/null"]),
        )

    def each(self):
        for name, ending, command in self.writers():
            with self.subTest(verb=name):
                path = self.at(name.replace(" ", "_") + ending)

                def write(*options, command=command, path=path, name=name, **more):
                    behind = ["--", "true"] if name == "record" else []
                    return run(*command, "-o", path, *options, *behind, **more)

                yield name, path, write

    def fine(self, done):
        self.assertEqual(done.returncode, FINE, done.stderr)


class OneRule(Case):
    def test_modes_of_new_files(self):
        for name, path, write in self.each():
            self.fine(write())
            self.assertEqual(self.mode(path), 0o600 if name in PRIVATE else 0o644)

    def test_an_existing_file_is_refused_and_kept(self):
        for _, path, write in self.each():
            self.put(path)
            done = write()
            self.assertEqual(done.returncode, USAGE, done.stderr)
            self.assertIn("already exists", done.stderr)
            self.assertIn("--force", done.stderr)
            self.assertEqual(content(path), b"old")

    def test_force_replaces_and_keeps_the_permissions(self):
        for _, path, write in self.each():
            for mode in (0o600, 0o664):
                self.put(path, mode=mode)
                self.fine(write("--force"))
                self.assertEqual(self.mode(path), mode)
                self.assertNotEqual(content(path), b"old")

    def test_links_are_replaced_not_followed(self):
        for name, path, write in self.each():
            victim = self.put(f"victim of {name}", mode=0o600)
            for link in (os.symlink, os.link):
                link(victim, path)
                self.assertEqual(write().returncode, USAGE)
                self.fine(write("--force"))
                self.assertTrue(stat.S_ISREG(os.lstat(path).st_mode))
                self.assertEqual(content(victim), b"old")
                self.assertGreater(len(content(path)), 3)
                os.remove(path)

    def test_nothing_but_the_file_stays(self):
        for _, path, write in self.each():
            self.fine(write())
            self.assertEqual(os.listdir(self.dir), [os.path.basename(path)])
            os.remove(path)

    def test_devices_and_descriptors(self):
        for name, _, command in self.writers():
            behind = ["--", "true"] if name == "record" else []
            for device in ("/dev/null", "/dev/stdout", "/dev/fd/1"):
                with self.subTest(verb=name, device=device):
                    with open(self.at("stdout"), "wb") as out:
                        done = run(*command, "-o", device, *behind, stdout=out)
                    self.fine(done)
                    self.assertEqual(os.path.getsize(self.at("stdout")) > 0, device != "/dev/null")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        self.assertTrue(stat.S_ISLNK(os.lstat("/dev/stdout").st_mode))

    def test_a_pipe_is_written_and_stays(self):
        for _, path, write in self.each():
            os.mkfifo(path)
            got = []
            reader = threading.Thread(target=lambda path=path, got=got: got.append(content(path)), daemon=True)
            reader.start()
            self.fine(write())
            reader.join(LIMIT)
            self.assertGreater(len(got[0]), 3)
            self.assertTrue(stat.S_ISFIFO(os.lstat(path).st_mode))

    def test_a_folder_is_refused(self):
        for name, path, write in self.each():
            if name == "diff":
                continue  # writes several reports there
            os.mkdir(path)
            done = write("--force")
            self.assertNotEqual(done.returncode, FINE, done.stderr)
            self.assertEqual(os.listdir(path), [], name)

    def test_no_folder(self):
        for name, _, command in self.writers():
            with self.subTest(verb=name):
                behind = ["--", "true"] if name == "record" else []
                done = run(*command, "-o", self.at("no/such/folder.json"), *behind)
                self.assertEqual(done.returncode, ENVIRONMENT, done.stderr)

    def test_a_disk_that_is_full_leaves_nothing_and_keeps_what_was_there(self):
        for name, path, write in self.each():
            if name == "record":
                continue  # keeps what was recorded so far
            self.put(path)
            done = write("--force", preexec_fn=small_files)
            self.assertEqual(done.returncode, ENVIRONMENT, done.stderr)
            self.assertEqual(os.listdir(self.dir), [os.path.basename(path)])
            self.assertEqual(content(path), b"old")
            os.remove(path)


def small_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))


class Folders(Case):
    """Verbs that write several files into a folder: each of them by the same rule, and none when one is refused."""

    def check(self, *command):
        first = run(*command, "-o", self.at("out"))
        self.fine(first)
        files = sorted(os.listdir(self.at("out")))
        self.assertGreaterEqual(len(files), 2)
        victim = self.put("victim", mode=0o600)
        path = os.path.join(self.at("out"), files[-1])
        os.remove(path)
        os.symlink(victim, path)
        others = [os.path.join(self.at("out"), name) for name in files[:-1]]
        for other in others:
            os.remove(other)
        self.assertEqual(run(*command, "-o", self.at("out")).returncode, USAGE)
        self.assertEqual(os.listdir(self.at("out")), [files[-1]])
        self.fine(run(*command, "--force", "-o", self.at("out")))
        self.assertEqual(sorted(os.listdir(self.at("out"))), files)
        self.assertEqual(content(victim), b"old")
        self.assertFalse(os.path.islink(path))

    def test_profile(self):
        self.check("culprit", "profile", self.trace)

    def test_diff(self):
        self.check("culprit", "diff", self.trace, self.trace)

    def test_export_of_several_ranks(self):
        self.fine(run("culprit-tracegen", "-q", "--steps", "2", "--layers", "1", "--ranks", "2", "-o", self.at("two.json")))
        self.check("culprit", "export", self.at("two.rank0.json"), self.at("two.rank1.json"))


class FailedStarts(Case):
    """A recording that could not begin takes nothing away that it did not make."""

    def start(self, *options, command="/no/such/program"):
        return run("culprit", "record", *options, "--", command)

    def test_a_device_a_pipe_and_a_link_stay(self):
        pipe = self.at("pipe")
        os.mkfifo(pipe)
        keep = os.open(pipe, os.O_RDWR)
        self.addCleanup(os.close, keep)
        link = self.at("link")
        os.symlink("/dev/null", link)
        device = self.at("null")
        try:
            os.mknod(device, 0o666 | stat.S_IFCHR, os.stat("/dev/null").st_rdev)
        except PermissionError as error:
            self.skipTest(f"cannot make a device to try it on: {error}")
        for path in (pipe, device, link):
            for force in ([], ["--force"]):
                with self.subTest(path=path, force=force):
                    before = os.lstat(path).st_ino
                    self.assertEqual(self.start("-o", path, *force).returncode, USAGE)
                    self.assertEqual(os.lstat(path).st_ino, before)

    def test_a_recording_that_would_have_been_replaced_stays(self):
        old = self.put("run.pftrace")
        self.assertEqual(self.start("--force", "-o", old).returncode, USAGE)
        self.assertEqual(content(old), b"old")
        self.assertEqual(os.listdir(self.dir), ["run.pftrace"])

    def test_waiting_for_a_reader_can_be_interrupted(self):
        pipe = self.at("pipe")
        os.mkfifo(pipe)
        command = [os.path.join(ARGS.bin, "culprit"), "record", "-o", pipe, "--", "sleep", "100"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True) as recorder:
            time.sleep(0.5)
            self.assertIsNone(recorder.poll(), "it waits")
            os.killpg(recorder.pid, signal.SIGINT)
            try:
                recorder.wait(10)
            except subprocess.TimeoutExpired:
                recorder.kill()
                self.fail("it cannot be interrupted")

    def test_a_reader_that_goes_away_ends_the_recording(self):
        pipe = self.at("pipe")
        os.mkfifo(pipe)
        command = [os.path.join(ARGS.bin, "culprit"), "record", "-o", pipe, "--", "sleep", "100"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as recorder:
            with open(pipe, "rb") as reader:
                self.assertTrue(reader.read(1))
            try:
                _, errors = recorder.communicate(timeout=20)
                self.assertEqual(recorder.returncode, ENVIRONMENT, errors)
            finally:
                os.killpg(recorder.pid, signal.SIGKILL)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bin", required=True)
    ARGS, rest = parser.parse_known_args()
    ARGS.bin = os.path.abspath(ARGS.bin)
    unittest.main(argv=[sys.argv[0], *rest])
