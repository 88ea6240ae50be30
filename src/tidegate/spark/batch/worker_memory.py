"""How much memory a Python worker has taken, and how much more there is for it.

What counts is anonymous memory: a state file that is mapped takes pages that the system can drop at
any time. What is left is the least of what the machine, the groups that limit the process (a
container) and its own limit (`spark.executor.pyspark.memory`) still allow. Reading this takes a
tenth of a millisecond. Where the system does not tell it, nothing is reported.
"""

import os
import resource
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

_GROUPS = Path("/sys/fs/cgroup")
_LARGE_BYTES = 32 * 2**20
"""After tasks with more than this, Arrow is told to give back what it keeps for the next one."""


@dataclass(frozen=True, slots=True)
class WorkerMemory:
    """One Python process at one moment."""

    process: int
    bytes: int
    """Memory of its own."""
    base_bytes: int
    """What it had when it started: the interpreter and its modules."""
    room_bytes: int | None
    """How much more it may take; None where nothing limits it."""


def _status(names: tuple[str, ...]) -> dict[str, int]:
    """Sizes of this process in bytes; empty where the system does not tell them."""
    return _sizes(Path("/proc/self/status"), names)


def _sizes(file: Path, names: tuple[str, ...]) -> dict[str, int]:
    """Lines such as `MemAvailable:  123 kB`, in bytes."""
    found = {}
    try:
        for line in file.read_text(encoding="ascii", errors="replace").splitlines():
            name, _, rest = line.partition(":")
            if name in names:
                found[name] = int(rest.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        return {}
    return found


_BASE_BYTES = _status(("RssAnon",)).get("RssAnon", 0)
"""Of Spark's daemon, which imports this module before it forks workers."""


def worker_memory(received_bytes: int = 0) -> WorkerMemory | None:
    """This process now, at the end of a task that was given so many bytes of rows."""
    if received_bytes > _LARGE_BYTES:
        pa.default_memory_pool().release_unused()
    told = _status(("RssAnon", "VmSize"))
    if "RssAnon" not in told:
        return None
    rooms = [_machine_room(), _group_room(), _process_room(told.get("VmSize", 0))]
    known = [room for room in rooms if room is not None]
    return WorkerMemory(
        process=os.getpid(),
        bytes=told["RssAnon"],
        base_bytes=min(_BASE_BYTES, told["RssAnon"]),
        room_bytes=max(min(known), 0) if known else None,
    )


def _machine_room() -> int | None:
    return _sizes(Path("/proc/meminfo"), ("MemAvailable",)).get("MemAvailable")


def _process_room(size_bytes: int) -> int | None:
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if most == resource.RLIM_INFINITY else most - size_bytes


def _group_room() -> int | None:
    """What the tightest of the groups that this process is in still allows (version 2)."""
    try:
        own = Path("/proc/self/cgroup").read_text(encoding="ascii")
    except OSError:
        return None
    path = next((line[3:] for line in own.splitlines() if line.startswith("0::")), None)
    if path is None:
        return None
    rooms = []
    group = _GROUPS / path.strip().lstrip("/")
    while group == _GROUPS or _GROUPS in group.parents:
        room = group_room(group)
        if room is not None:
            rooms.append(room)
        group = group.parent
    return min(rooms, default=None)


def group_room(group: Path) -> int | None:
    """What one group still allows; None where it sets no limit. Cached files can be dropped."""
    try:
        most = (group / "memory.max").read_text(encoding="ascii").strip()
        if most == "max":
            return None
        used = int((group / "memory.current").read_text(encoding="ascii"))
        stat = (group / "memory.stat").read_text(encoding="ascii").splitlines()
        cached = sum(int(line.split()[1]) for line in stat if line.startswith("inactive_file "))
        return int(most) - (used - cached)
    except (OSError, ValueError):
        return None
