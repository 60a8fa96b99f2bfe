"""Other work beside what is measured: what a shared machine does to a program. Each scene is a context manager that
gives the processes of its load, started when it is entered and ended when it is left."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

BUSY = "while True: pass"
BURSTS = """
import time
while True:
    end = time.monotonic() + 0.01
    while time.monotonic() < end:
        pass
    time.sleep(0.01)
"""
QUOTA = 1.5  # processors
PERIOD_US = 100_000

Enter = Callable[[list[int]], None]  # takes the process ids of what is measured


class Absent(Exception):
    """A scene that this machine cannot make, and why."""


@contextlib.contextmanager
def run_loads(script: str, cores: list[int]) -> Iterator[Enter]:
    loads = [subprocess.Popen([sys.executable, "-c", script], start_new_session=True) for _ in cores]
    try:
        for load, core in zip(loads, cores):
            os.sched_setaffinity(load.pid, [core])
        yield lambda measured: None
    finally:
        for load in loads:
            load.send_signal(signal.SIGKILL)
            load.wait()


def find_quota_folder() -> pathlib.Path:
    for folder in (pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup")):
        if (folder / "cpu.cfs_quota_us").exists() or (folder / "cgroup.controllers").exists():
            return folder
    raise Absent("there is no cgroup of processors")


@contextlib.contextmanager
def limit_quota(cores: list[int]) -> Iterator[Enter]:
    """A cgroup with QUOTA processors, into which the measured processes move, and out of it again."""
    parent = find_quota_folder()
    folder = parent / "lissome_bench"
    moved: list[int] = []
    try:
        folder.mkdir(exist_ok=True)
        quota = int(QUOTA * PERIOD_US)
        if (folder / "cpu.cfs_quota_us").exists():
            (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US), encoding="ascii")
            (folder / "cpu.cfs_quota_us").write_text(str(quota), encoding="ascii")
        else:
            (folder / "cpu.max").write_text(f"{quota} {PERIOD_US}", encoding="ascii")
    except OSError as error:
        raise Absent(f"a quota cannot be set: {error}") from error

    def enter(measured: list[int]) -> None:
        for pid in measured:
            (folder / "cgroup.procs").write_text(str(pid), encoding="ascii")
            moved.append(pid)

    try:
        yield enter
    finally:
        for pid in moved:
            with contextlib.suppress(OSError):  # it has ended
                (parent / "cgroup.procs").write_text(str(pid), encoding="ascii")
        with contextlib.suppress(OSError):  # its last process is on its way out
            folder.rmdir()


def find_sibling(core: int) -> int:
    """A core that shares its units with `core`."""
    path = pathlib.Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
    text = path.read_text(encoding="ascii").strip() if path.exists() else ""
    for part in text.split(","):
        first, _, last = part.partition("-")
        for other in range(int(first), int(last or first) + 1) if first else ():
            if other != core and other in os.sched_getaffinity(0):
                return other
    raise Absent("no two processors here share a core")


def pin_threads(pid: int, cores: list[int]) -> None:
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), cores)


@contextlib.contextmanager
def take_cores(cores: list[int]) -> Iterator[Enter]:
    """Leaves the measured processes, which run already, one of their cores."""
    moved: list[int] = []

    def enter(measured: list[int]) -> None:
        for pid in measured:
            moved.append(pid)
            pin_threads(pid, cores[:1])

    try:
        yield enter
    finally:
        for pid in moved:
            with contextlib.suppress(OSError):  # it has ended
                pin_threads(pid, cores)


@contextlib.contextmanager
def run_nothing() -> Iterator[Enter]:
    yield lambda measured: None


def make_scene(name: str, cores: list[int]) -> contextlib.AbstractContextManager[Enter]:
    """One of SCENES, on the cores that what is measured may use. Raises Absent."""
    if name == "quiet":
        return run_nothing()
    if name == "one busy":
        return run_loads(BUSY, cores[-1:])
    if name == "all busy":
        return run_loads(BUSY, cores)
    if name == "bursts":
        return run_loads(BURSTS, cores[-1:])
    if name == "quota":
        find_quota_folder()
        return limit_quota(cores)
    if name == "core taken":
        return take_cores(cores)
    return run_loads(BUSY, [find_sibling(cores[-1])])


SCENES = ("quiet", "one busy", "all busy", "bursts", "quota", "core taken", "sibling busy")
