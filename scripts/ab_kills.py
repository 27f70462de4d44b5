"""Whether anything of a `culprit ab` stays behind that is killed while two processes run in turns, for scripts/trial-ab."""

import collections
import os
import random
import signal
import subprocess
import time

from real_servers import descendants

PATIENCE = 5.0  # seconds until everything must be as it was


def hierarchies():
    """Where control groups are mounted, with the controllers that are there (version 2: one without a name)."""
    with open("/proc/self/mounts", encoding="utf-8") as file:
        mounts = [line.split() for line in file]
    return [(words[1], {""} if words[2] == "cgroup2" else set(words[3].split(","))) for words in mounts if words[2] in ("cgroup", "cgroup2")]


def groups(makers=None):
    """All groups that a `culprit ab`, or one of these processes, made and nobody removed."""
    found = {os.path.join(folder, name) for mount, _ in hierarchies() for folder, names, _ in os.walk(mount) for name in names if name.startswith("culprit-ab-")}
    return {path for path in found if makers is None or os.path.basename(path).split("-")[2] in map(str, makers)}


def text_of(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def state_of(pid, thread=None):
    return text_of(f"/proc/{pid}/task/{thread or pid}/stat").rpartition(")")[2][1:2]


def threads_of(pid):
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def frozen_group(pid):
    """The group that a freezer holds the process in, or none."""
    mounts = hierarchies()
    for line in text_of(f"/proc/{pid}/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        for folder in (mount + path for mount, there in mounts if there & set(controllers.split(","))):
            state, events = text_of(os.path.join(folder, "freezer.state")), text_of(os.path.join(folder, "cgroup.events"))
            if state.strip() in ("FROZEN", "FREEZING") or "frozen 1" in events:
                return folder
    return None


def how_it_stands(pid, stopped=("T", "t")):
    """In words how the process, or one that it started, is made to stand still, by a signal or a tracer (states in `stopped`), or by a freezer; None: it is not."""
    for process in descendants(pid):
        if frozen_group(process):
            return "frozen"
        if any(state_of(process, thread) in stopped for thread in threads_of(process)):
            return "stopped"
    return None


def cpu_time(pid):
    fields = text_of(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12]) if fields else 0


def wait_for(condition, seconds=None):
    """Whether it came true in time."""
    end = time.monotonic() + (PATIENCE if seconds is None else seconds)
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def what_is_wrong(pids, groups_before, own, makers=None):
    """A list, empty when both sides run on and nothing is left; `own` are the processes of the one that was killed that may live on, `makers` those whose groups are looked for."""
    end = time.monotonic() + PATIENCE
    left = lambda: max(0.0, end - time.monotonic())
    wrong = []
    for side, pid in zip(("baseline", "candidate"), pids):
        if not wait_for(lambda: how_it_stands(pid) is None, left()):
            wrong.append(f"the {side} ({pid}) stays {how_it_stands(pid)}")
        elif state_of(pid) in ("", "Z", "X"):
            wrong.append(f"the {side} ({pid}) has ended")
        else:
            used = cpu_time(pid)
            if not wait_for(lambda: cpu_time(pid) > used):
                wrong.append(f"the {side} ({pid}) uses no CPU any more")
    wait_for(lambda: not groups(makers) - groups_before, left())
    wrong += [f"{folder} is left" for folder in sorted(groups(makers) - groups_before)]
    living = lambda: [pid for pid in own if state_of(pid) not in ("", "Z", "X")]
    wait_for(lambda: not living(), left())
    return wrong + [f"process {pid} of it still runs" for pid in living()]


def set_going(pids):
    """What a failure left standing, for the runs that follow."""
    for process in [process for pid in pids for process in descendants(pid)]:
        folder = frozen_group(process)
        for name, value in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")) if folder else ():
            if os.path.exists(os.path.join(folder, name)):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(value)
        if state_of(process) == "T":
            os.kill(process, signal.SIGCONT)


def kill_once(command, pids, moment):
    """Starts it and kills it after so many seconds. How the sides stood then, and what is wrong afterwards."""
    before = groups()
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        _, told = started.communicate(timeout=moment)
        return "it had ended", [f"it ended by itself with {started.returncode}: {told.decode(errors='replace').strip()[-300:]}"]
    except subprocess.TimeoutExpired:
        pass
    own = [pid for pid in descendants(started.pid) if pid != started.pid]
    # A tracer stops them for moments, to attach to them: that is no turn.
    stood = next(filter(None, (how_it_stands(pid, ("T",)) for pid in pids)), "both ran")
    started.send_signal(signal.SIGKILL)
    started.wait()
    return stood, what_is_wrong(pids, before, own, {started.pid, *own})  # others may run beside it


def trial(command, pids, runs, within):
    """Kills at moments by chance, prints each failure and how many were fine; whether all were."""
    fine, stood_how = 0, collections.Counter()
    for i in range(runs):
        moment = random.uniform(0, within)
        stood, wrong = kill_once(command, pids, moment)
        stood_how[stood] += 1
        fine += not wrong
        for text in wrong:
            print(f"FAILED run {i + 1}, killed after {moment:.3f} s ({stood}): {text}", flush=True)
        if wrong:
            set_going(pids)
    print(f"{fine} of {runs} fine; at the kill a side was: " + ", ".join(f"{how} {count}" for how, count in sorted(stood_how.items())), flush=True)
    return fine == runs
