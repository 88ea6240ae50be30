"""Child processes that tests kill, stop and wake: found by their parents, never by their names."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path


def children(pid: int) -> list[int]:
    """All processes below one, found by their parents."""
    found: list[int] = []
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    waiting = [pid]
    while waiting:
        below = parents.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def executors(pid: int) -> list[int]:
    """Executor processes below a driver."""
    found = []
    for child in children(pid):
        try:
            command = Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in command:
            found.append(child)
    return found


def signal_tree(process: subprocess.Popen, number: signal.Signals) -> None:
    """Send a signal to a process and to all below it."""
    for pid in [process.pid, *children(process.pid)]:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def kill_tree(process: subprocess.Popen) -> None:
    """Kill a process and all below it, stopped ones included."""
    signal_tree(process, signal.SIGKILL)
    process.wait()


def wait_for(condition: Callable[[], bool], seconds: float, process: subprocess.Popen) -> bool:
    """Whether the condition comes true while the process runs, within so many seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        if process.poll() is not None:
            return bool(condition())
        pass_time(process, 0.02)
    return False


def pass_time(process: subprocess.Popen, seconds: float) -> None:
    """Let time pass, or the process end."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return
