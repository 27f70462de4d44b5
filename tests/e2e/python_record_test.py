#!/usr/bin/env python3
"""Recordings by the Python package, in the environment that scripts/python-env makes.

    python_record_test.py --env BUILD_DIR/python --bin BUILD_DIR --source SOURCE_DIR [unittest options]
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest.mock

from python_package_test import ARGS, WHY, Case, main, run

if WHY is None:
    import culprit
    import culprit._record


class Recordings(Case):
    """By the program itself."""

    @contextlib.contextmanager
    def privileged(self):
        """A machine on which nothing can be recorded is a skip."""
        try:
            yield
        except culprit.Error as error:
            if error.kind == "environment":
                self.skipTest(str(error))
            raise

    def test_a_command_is_recorded(self):
        with self.privileged():
            with culprit.record([sys.executable, "-c", "import time; time.sleep(0.3)"]) as recording:
                pass
        self.assertGreater(len(recording.run.top()), 0)

    def test_a_process_is_recorded_while_the_block_runs(self):
        target = subprocess.Popen([sys.executable, "-c", "import time\nwhile True: time.sleep(0.01)"])
        try:
            with self.privileged():
                with culprit.record(target.pid, output=self.at("kept.pftrace")) as recording:
                    time.sleep(1)
        finally:
            target.kill()
            target.wait()
        self.assertTrue(os.path.exists(self.at("kept.pftrace")))
        self.assertGreater(len(recording.run.slices()), 0)

    def test_a_process_that_is_not_there_is_an_error(self):
        with self.assertRaises(culprit.Error) as caught:
            with culprit.record(2**22 - 1):
                pass
        error = caught.exception
        self.assertEqual(error.what, "no such process")
        self.assertIn(str(2**22 - 1), error.where)
        self.assertTrue(error.remedy)
        self.assertIn(f"{error.where}: {error.what} ({error.remedy})", str(error))

    def test_a_command_that_is_not_there_is_an_error(self):
        with self.privileged(), self.assertRaises(culprit.Error) as caught:
            with culprit.record([self.at("nothing")]):
                pass
        self.assertEqual(caught.exception.kind, "usage")
        self.assertRegex(str(caught.exception), "^culprit: cannot execute")

    def test_a_descriptor_that_is_not_open_is_refused(self):
        done = run(os.path.join(ARGS.bin, "culprit"), "record", "-o", self.at("refused.pftrace"), "--command-stderr", "999", "--", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--command-stderr 999 is not an open file", done.stderr)

    def test_the_summary_goes_into_an_open_file(self):
        """Which the command does not have."""
        done = run(os.path.join(ARGS.bin, "culprit"), "record", "-o", self.at("refused.pftrace"), "--json-fd", "999", "--", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--json-fd 999 is not an open file", done.stderr)
        with open(self.at("summary.json"), "w+", encoding="utf-8") as file:
            number = file.fileno()
            command = ["sh", "-c", f"test -e /proc/self/fd/{number} && exit 9; exit 5"]
            done = run(os.path.join(ARGS.bin, "culprit"), "record", "-o", self.at("summed.pftrace"), "--json-fd", str(number), "--", *command, pass_fds=[number])
            if done.returncode == 4:
                self.skipTest(done.stderr)
            self.assertEqual((done.returncode, done.stdout), (5, ""))
            file.seek(0)
            self.assertEqual(json.load(file)["command_exit_code"], 5)

    def test_a_command_may_say_much(self):
        program = "import culprit, sys\nwith culprit.record([sys.executable, '-c', 'import sys; sys.stderr.write(1_000_000 * chr(120))']): pass"
        done = run(sys.executable, "-c", program)
        if "culprit._error.Error" in done.stderr:
            self.skipTest(done.stderr[-300:])
        self.assertEqual(done.stderr, 1_000_000 * "x")

    def test_a_command_that_fails_is_recorded(self):
        for code in (1, 2, 4):
            with self.subTest(code), self.privileged():
                with culprit.record([sys.executable, "-c", f"import sys; sys.exit({code})"]) as recording:
                    time.sleep(1)
            self.assertTrue(os.path.exists(recording.path))
            self.assertEqual(recording.returncode, code)

    def test_what_the_recorder_says_is_kept(self):
        with self.privileged():
            with culprit.record(["sh", "-c", "echo said >&2; sleep 0.3; exit 7"]) as recording:
                self.assertEqual((recording.messages, recording.returncode), ([], None))
        self.assertRegex("\n".join(recording.messages), "(?m)^culprit: recorded [0-9.]+ s into ")
        self.assertNotIn("said", recording.messages)
        self.assertEqual(recording.returncode, 7)

    def test_functions_that_were_not_there_are_a_warning(self):
        command = [sys.executable, "-c", "import json, time; time.sleep(4)"]  # as long as two tries take
        with self.privileged(), self.assertWarnsRegex(UserWarning, "culprit.record: not seen: .*json:nothing") as caught:
            with culprit.record(command, options=["--python", "json:nothing"]) as recording:
                pass
        self.assertEqual(caught.filename, __file__)
        self.assertIn("json:nothing", "\n".join(recording.messages))
        self.assertGreater(len(recording.run.top()), 0)

    def test_what_is_not_recorded_yet_is_not_read(self):
        with self.privileged():
            with culprit.record(["sleep", "0.3"]) as recording:
                with self.assertRaisesRegex(culprit.Error, "still recording"):
                    recording.run
        self.assertGreater(len(recording.run.top()), 0)
        with self.assertRaisesRegex(culprit.Error, "nothing is recorded yet"):
            culprit.record(["sleep", "0.3"]).run

    def test_arguments_that_are_none_are_named(self):
        for arguments, options, error, name in (
            ((1,), {"options": "--force"}, TypeError, "options"),
            ((1,), {"options": [1]}, TypeError, "options"),
            ((True,), {}, TypeError, "target"),
            ((0,), {}, ValueError, "target"),
            ((None,), {}, TypeError, "target"),
            ((b"sleep",), {}, TypeError, "target"),
            (([],), {}, ValueError, "target"),
            ((["sleep", 1],), {}, TypeError, "target"),
        ):
            with self.subTest(arguments=arguments, **options), self.assertRaisesRegex(error, f"^{name} is "):
                culprit.record(*arguments, **options)

    def test_a_file_that_exists_is_overwritten_when_asked(self):
        path = self.at("there.pftrace")
        with open(path, "wb") as file:
            file.write(b"there")
        with self.assertRaises(culprit.Error) as caught:
            with culprit.record(os.getpid(), output=path):
                pass
        self.assertEqual(caught.exception.kind, "usage")
        with open(path, "rb") as file:
            self.assertEqual(file.read(), b"there")
        with self.privileged():
            with culprit.record(["sleep", "0.3"], output=path, options=["--force"]) as recording:
                self.assertGreater(os.path.getsize(path), 0)
                with open(path, "rb") as file:
                    self.assertNotEqual(file.read(5), b"there")
        self.assertGreater(len(recording.run.top()), 0)

    def test_a_block_that_fails_ends_the_command(self):
        class Failed(Exception):
            pass

        held = self.at("held")
        with self.privileged(), self.assertRaises(Failed):
            with culprit.record([sys.executable, "-c", f"import os, time\nopen({held!r}, 'w').write(str(os.getpid()))\ntime.sleep(100)"]):
                begin = time.monotonic()
                while not (os.path.exists(held) and os.path.getsize(held)) and time.monotonic() - begin < 20:
                    time.sleep(0.01)
                begin = time.monotonic()
                raise Failed
        self.assertLess(time.monotonic() - begin, 30)
        with open(held, encoding="ascii") as file:
            self.assertFalse(os.path.exists(f"/proc/{file.read()}"))

    def test_a_program_that_is_killed_leaves_nothing_that_runs(self):
        with self.privileged():
            with culprit.record(["true"]):
                pass
        program = """
import culprit, sys, time
with culprit.record(["sleep", "100"], output=sys.argv[1]) as recording:
    print(recording._process.pid, flush=True)
    time.sleep(100)
"""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(number):
                kept = self.at(f"killed{number}.pftrace")
                started = subprocess.Popen([sys.executable, "-c", program, kept], stdout=subprocess.PIPE, text=True)
                recorder = int(started.stdout.readline())
                with open(f"/proc/{recorder}/task/{recorder}/children", encoding="ascii") as file:
                    command = int(file.read())
                started.send_signal(number)
                started.wait()
                started.stdout.close()
                self.assert_gone(recorder)
                self.assert_gone(command)
                self.assertEqual(culprit.load(kept).losses, [])

    def test_who_is_forked_inside_of_the_block_ends_nothing(self):
        for end in ("sys.exit()", "pass"):
            program = f"""
import culprit, os, sys
with culprit.record(["sleep", "1"]) as recording:
    child = os.fork()
    if child == 0:
        {end}
if child == 0:
    try:
        recording.run
    except culprit.Error as error:
        os._exit(0 if "still recording" in str(error) else 1)
    os._exit(1)
print(os.wait()[1], recording.returncode, len(recording.run.top()) > 0)
"""
            with self.subTest(end), self.privileged():
                with culprit.record(["true"]):
                    pass
                done = run(sys.executable, "-c", program)
                self.assertEqual((done.returncode, done.stdout), (0, "0 0 True\n"), done.stderr)

    def test_where_no_file_can_be_is_told_by_the_program(self):
        for path in (self.at("file") + "/below", self.at("x" * 300)):
            with open(self.at("file"), "w", encoding="ascii"), self.assertRaises(culprit.Error) as caught:
                with culprit.record(["true"], output=path):
                    pass
            self.assertIn(path, str(caught.exception))

    def test_a_recording_that_is_dropped_ends(self):
        with self.privileged():
            recording = culprit.record(["sleep", "100"]).__enter__()
        recorder, path = recording._process.pid, recording.path
        if os.fork() == 0:  # what it has of the recording is not its own
            recording.__del__()
            del recording
            os._exit(0)
        os.wait()
        self.assertTrue(os.path.exists(f"/proc/{recorder}") and os.path.exists(path))
        del recording
        self.assert_gone(recorder)
        self.assertFalse(os.path.exists(os.path.dirname(path)))

    def test_a_program_may_change_into_another_folder(self):
        before = os.getcwd()
        os.chdir(self.at(""))
        try:
            with self.privileged(), culprit.record(["sleep", "0.3"], output="here.pftrace") as recording:
                os.chdir("/")
            self.assertEqual(recording.path, os.path.join(os.path.realpath(self.at("")), "here.pftrace"))
            self.assertGreater(len(recording.run.top()), 0)
        finally:
            os.chdir(before)

    def test_a_recorder_that_is_killed_is_an_error_and_ends_its_command(self):
        with self.privileged(), culprit.record(["true"]):
            pass
        for command in (["sleep", "100.123"], None):
            other = None if command else subprocess.Popen(["sleep", "100"])
            try:
                with self.subTest(command), self.assertRaisesRegex(culprit.Error, "ended by signal 9.*holds what it had recorded"):
                    with culprit.record(command or other.pid, output=self.at(f"killed{bool(command)}.pftrace")) as recording:
                        os.kill(recording._process.pid, signal.SIGKILL)
                        time.sleep(0.1)
                for pid in filter(str.isdigit, os.listdir("/proc")):
                    if self.command_of(pid) == b"sleep\x00100.123\x00":
                        self.assert_gone(pid)
                self.assertTrue(other is None or other.poll() is None, "it was there before")
            finally:
                if other:
                    other.kill()
                    other.wait()

    @staticmethod
    def command_of(pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return file.read()
        except OSError:
            return b""

    def test_a_recording_that_is_left_open_ends_with_python_without_a_word(self):
        done = run(sys.executable, "-c", "import culprit\nrecording = culprit.record(['sleep', '100'])\nrecording.__enter__()")
        if "culprit._error.Error" in done.stderr:
            self.skipTest(done.stderr[-300:])
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_targets_are_no_options(self):
        for options in (["--", "true"], ["-p", "1"], ["-p1"], ["--pid=1"], ["--pid", "1"]):
            with self.subTest(options), self.assertRaisesRegex(culprit.Error, "no option") as caught:
                with culprit.record(os.getpid(), options=options):
                    pass
            self.assertEqual(caught.exception.kind, "usage")

    def assert_gone(self, pid):
        end = time.monotonic() + 20
        while os.path.exists(f"/proc/{pid}") and time.monotonic() < end:
            time.sleep(0.01)
        self.assertFalse(os.path.exists(f"/proc/{pid}"))

    def test_a_pipe_that_none_can_be_told_of_is_refused(self):
        with tempfile.TemporaryFile() as file:
            done = run(os.path.join(ARGS.bin, "culprit"), "record", "-o", self.at("refused.pftrace"), "--end-fd", str(file.fileno()), "--", "true", pass_fds=[file.fileno()])
        self.assertEqual(done.returncode, 2)
        self.assertIn("is not the end of a pipe that is read", done.stderr)
        self.assertFalse(os.path.exists(self.at("refused.pftrace")))

    def test_a_pipe_that_nobody_holds_ends_it_at_once(self):
        end, held = os.pipe()
        os.close(held)
        done = run(os.path.join(ARGS.bin, "culprit"), "record", "-o", self.at("ended.pftrace"), "--end-fd", str(end), "--", "sleep", "100", pass_fds=[end])
        os.close(end)
        self.assertEqual((done.returncode, done.stderr), (-signal.SIGTERM, ""))
        self.assertFalse(os.path.exists(self.at("ended.pftrace")))

    def test_a_block_that_fails_after_the_command_has_ended_is_that_error(self):
        with self.privileged(), self.assertRaisesRegex(ValueError, "of the block"):
            with culprit.record(["sleep", "0.2"]):
                time.sleep(1)
                raise ValueError("of the block")


class Recorders(Case):
    """A script in place of the program: what is made of what a recorder does."""

    def setUp(self):
        super().setUp()
        self.script = self.at("recorder")
        self.marked = self.at("marked")
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.marked)
        patched = unittest.mock.patch.object(culprit._record, "program", lambda: self.script)
        patched.start()
        self.addCleanup(patched.stop)

    def write(self, body):
        """`$2` names the file of the summary, `$4` is the recording."""
        with open(self.script, "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\necho $$ > {self.marked}\n{body}\n")
        os.chmod(self.script, 0o755)

    def assert_ended(self):
        with open(self.marked, encoding="ascii") as file:
            self.assertFalse(os.path.exists(f"/proc/{file.read().strip()}"))

    def test_nothing_is_started_where_the_file_exists(self):
        self.write("exit 0")
        with self.assertRaises(culprit.Error):
            with culprit.record(1, output=self.trace):
                pass
        with self.assertRaises(culprit.Error):
            with culprit.record(1, output=self.folder.name):
                pass
        self.assertFalse(os.path.exists(self.marked))

    def test_the_block_waits_for_the_new_file(self):
        path = self.at("old.pftrace")
        with open(path, "w", encoding="ascii") as file:
            file.write("old")
        self.write("trap 'exit 0' INT; sleep 0.5; echo new > $4.part; mv $4.part $4; while :; do sleep 0.05; done")
        with culprit.record(1, output=path, options=["--force"]):
            with open(path, encoding="ascii") as file:
                self.assertEqual(file.read(), "new\n")
        self.assert_ended()

    def test_what_fails_when_it_has_begun_is_an_error(self):
        for code, kind in ((2, "usage"), (3, "input"), (4, "environment")):
            self.write(f"trap '' INT; touch $4; sleep 0.3; echo 'culprit: no space left' >&2; exit {code}")
            with self.subTest(code), self.assertRaises(culprit.Error) as caught:
                with culprit.record(1):
                    time.sleep(0.6)
            self.assertEqual((caught.exception.kind, caught.exception.what), (kind, "culprit: no space left"))

    def test_a_recorder_that_does_not_begin_is_an_error_and_ends(self):
        self.write("while :; do sleep 0.05; done")
        with unittest.mock.patch.object(culprit._record, "_START_S", 0.5), self.assertRaises(culprit.Error) as caught:
            with culprit.record(1):
                self.fail("the block ran")
        self.assertEqual(caught.exception.kind, "environment")
        self.assertIn("did not begin", str(caught.exception))
        self.assert_ended()

    def test_a_recorder_that_is_killed_before_it_begins_ends_its_command(self):
        self.write("sleep 60 & echo $! > $4.pid; sleep 0.2; kill -9 $$")
        path = self.at("never.pftrace")
        with self.assertRaises(culprit.Error) as caught:
            with culprit.record(["a command"], output=path):
                self.fail("the block ran")
        self.assertEqual(caught.exception.what, "culprit record was ended by signal 9")
        with open(f"{path}.pid", encoding="ascii") as file:
            child = file.read().strip()
        end = time.monotonic() + 10
        while os.path.exists(f"/proc/{child}/exe") and time.monotonic() < end:  # one that has ended has none
            time.sleep(0.02)
        self.assertFalse(os.path.exists(f"/proc/{child}/exe"))

    def test_a_command_that_fails_at_once_is_recorded(self):
        self.write("touch $4; echo '{\"command_exit_code\": 7}' > /proc/self/fd/${2#*=}; exit 7")
        with culprit.record(["a command"]) as recording:
            pass
        self.assertTrue(os.path.exists(recording.path))
        self.assertEqual(recording.returncode, 7)

    def test_messages_of_a_recording_that_succeeds_are_no_error(self):
        """Though the command ends with a code that the recorder has, too."""
        self.write("touch $4; echo '{\"command_exit_code\": 2}' > /proc/self/fd/${2#*=}; echo 'culprit: recorded' >&2; exit 2")
        with culprit.record(["a command"]) as recording:
            pass
        self.assertEqual((recording.messages, recording.returncode), (["culprit: recorded"], 2))

    def test_an_error_in_the_summary_is_one(self):
        self.write("touch $4; echo '{\"error\": \"no space left\"}' > /proc/self/fd/${2#*=}; echo 'culprit: recorded' >&2; exit 3")
        with self.assertRaises(culprit.Error) as caught:
            with culprit.record(["a command"]):
                time.sleep(0.3)
        self.assertEqual((caught.exception.kind, str(caught.exception)), ("input", "culprit: no space left"))

    def test_no_file_is_an_error(self):
        summed = "touch $4; sleep 0.3; rm $4; echo '{\"steps\": 0}' > /proc/self/fd/${2#*=}; echo 'culprit: recorded' >&2; exit 0"
        for target, body in ((1, "exit 0"), (["a command"], summed)):
            self.write(body)
            with self.subTest(body), self.assertRaisesRegex(culprit.Error, "^culprit record ended without a recording$"):
                with culprit.record(target):
                    pass

    def test_what_the_block_raises_after_the_end_is_raised_and_nothing_stays(self):
        """Neither the recorder, which has ended, nor the command that it left."""
        left, go = self.at("left"), self.at("go")
        self.write(f"sleep 100 & echo $! > {left}; touch $4; while [ ! -e {go} ]; do sleep 0.01; done; exit 0")
        with self.assertRaisesRegex(ValueError, "of the block"):
            with culprit.record(["a command"]):
                with open(go, "w", encoding="ascii"):
                    pass
                self.assert_ends(self.marked)
                raise ValueError("of the block")
        self.assert_ended()
        self.assert_ends(left)

    def assert_ends(self, path):
        """The process whose number the file holds; a zombie has ended."""

        def runs():
            try:
                with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
                    return stat.read().rsplit(") ", 1)[1][0] not in "ZX"
            except (FileNotFoundError, ProcessLookupError):
                return False

        with open(path, encoding="ascii") as file:
            pid = int(file.read())
        end = time.monotonic() + 20
        while runs() and time.monotonic() < end:
            time.sleep(0.01)
        self.assertFalse(runs())

    def test_the_error_output_of_a_command_is_no_standard_descriptor(self):
        """Of programs that have closed theirs."""
        self.write(f'echo "$6" > {self.marked}; echo said > "/proc/self/fd/$6"; touch $4; exit 2')
        program = "import culprit, culprit._record, os, sys\nculprit._record.program = lambda: sys.argv[1]\nfor fd in sys.argv[2:]: os.close(int(fd))\nwith culprit.record(['a command']): pass"
        for closed, said in (((), "said\n"), (("0",), "said\n"), (("0", "1"), "said\n"), (("2",), ""), (("0", "1", "2"), "")):
            with self.subTest(closed):
                done = run(sys.executable, "-c", program, self.script, *closed)
                self.assertEqual((done.returncode, done.stderr), (0, said))
                with open(self.marked, encoding="ascii") as file:
                    self.assertGreater(int(file.read()), 2)

    def test_control_c_before_it_begins_ends_it(self):
        self.write("while :; do sleep 0.05; done")
        program = f"""
import culprit, culprit._record
culprit._record.program = lambda: {self.script!r}
wait = culprit._record.Recording._wait_for_the_file
def told(self):
    print("waits", flush=True)
    wait(self)
culprit._record.Recording._wait_for_the_file = told
with culprit.record(1): pass
"""
        started = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(started.stdout.readline(), "waits\n")
        begin = time.monotonic()
        while not (os.path.exists(self.marked) and os.path.getsize(self.marked)) and time.monotonic() - begin < 20:
            time.sleep(0.01)
        started.send_signal(signal.SIGINT)
        _, said = started.communicate(timeout=60)
        self.assertIn("KeyboardInterrupt", said)
        self.assert_ended()

    def test_control_c_while_it_is_ended_leaves_nothing_that_runs(self):
        left = self.at("left_at_the_end")
        self.write(f"trap '' TERM; sleep 100 & echo $! > {left}; touch $4; while :; do sleep 0.05; done")
        recording = culprit.record(["a command"], output=self.at("cut_off.pftrace"))
        recording.__enter__()
        with unittest.mock.patch.object(culprit._record.time, "sleep", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            recording.__exit__(ValueError, ValueError("of the block"), None)
        self.assert_ended()
        self.assert_ends(left)
        with self.assertRaises(culprit.Error) as caught:
            recording.run  # an empty file
        self.assertEqual(caught.exception.kind, "input")


if __name__ == "__main__":
    main()
