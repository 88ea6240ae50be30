"""Memory and CPU time of all processes of a run: the driver, its JVM and the Python workers.

They are read from /proc, where there is one. Memory is the proportional set size: workers are
forked and share most of their pages, which would otherwise count once for each of them.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What the processes used, at one moment."""

    at_s: float
    memory_bytes: int
    cpu_s: float
    """CPU time since they began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MinuteUsage:
    """What they used over a minute."""

    at: int
    memory_mb: float
    """At its end."""
    cpu: float
    """CPU time as a share of what all cores of the machine have."""


class Usage:
    """Looks at this process and everything below it, at most once a minute."""

    def __init__(self, minute_s: float, proc: Path = _PROC) -> None:
        self._minute_s = minute_s
        self._proc = proc
        self.seen: list[Used] = []

    def look(self, at_s: float) -> None:
        """Look, unless the minute of the last look is not over."""
        if not self.seen or at_s - self.seen[-1].at_s >= self._minute_s:
            pids = below(os.getpid(), self._proc)
            if pids:
                self.seen.append(used_by(pids, at_s, self._proc))

    def minutes(self) -> list[MinuteUsage]:
        """What was used between two looks."""
        cores = os.cpu_count() or 1
        return [
            MinuteUsage(
                at=number + 1,
                memory_mb=after.memory_bytes / 1e6,
                cpu=(after.cpu_s - before.cpu_s) / ((after.at_s - before.at_s) * cores),
            )
            for number, (before, after) in enumerate(zip(self.seen, self.seen[1:], strict=False))
        ]


def below(root: int, proc: Path = _PROC) -> list[int]:
    """A process and all its descendants; none where there is no /proc."""
    children: dict[int, list[int]] = {}
    for entry in proc.glob("[0-9]*"):
        fields = _stat(entry)
        if fields is not None:
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    if not children:
        return []
    found, frontier = [], [root]
    while frontier:
        pid = frontier.pop()
        found.append(pid)
        frontier += children.get(pid, [])
    return found


def used_by(pids: list[int], at_s: float | None = None, proc: Path = _PROC) -> Used:
    """What these processes use; one that has ended meanwhile counts as nothing."""
    ticks = os.sysconf("SC_CLK_TCK")
    memory = 0
    cpu_s = 0.0
    for pid in pids:
        fields = _stat(proc / str(pid))
        if fields is not None:
            cpu_s += (int(fields[11]) + int(fields[12])) / ticks
            memory += _memory_bytes(proc / str(pid))
    return Used(at_s=time.time() if at_s is None else at_s, memory_bytes=memory, cpu_s=cpu_s)


def _stat(entry: Path) -> list[str] | None:
    """The fields of a process behind its name, from its state on; None if it has ended."""
    try:
        return (entry / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _memory_bytes(entry: Path) -> int:
    try:
        text = (entry / "smaps_rollup").read_text()
    except OSError:
        return 0
    sizes = [line.split()[1] for line in text.splitlines() if line.startswith("Pss:")]
    return int(sizes[0]) * 1024 if sizes else 0
