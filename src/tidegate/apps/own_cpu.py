"""The CPU time of this process and of all that it has started: Spark's JVM and Python workers.

It is that of the application alone, whatever else the machine does meanwhile.
"""

import os
from collections import defaultdict
from pathlib import Path

_PROC = Path("/proc")
_PARENT, _TIMES = 1, slice(11, 15)
"""Places in `/proc/PID/stat` behind the name: the parent, and the ticks in user and system mode,
first its own and then those of children that have ended."""


def own_cpu_s(proc: Path = _PROC, pid: int | None = None) -> float | None:
    """CPU seconds of a process and its descendants so far; None where the kernel does not tell.

    Without a `pid`, it is this process.
    """
    ticks: dict[int, int] = {}
    children: defaultdict[int, list[int]] = defaultdict(list)
    for file in proc.glob("[0-9]*/stat"):
        try:
            # The name is in parentheses and may have spaces and parentheses itself.
            told = file.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            number = int(file.parent.name)
            ticks[number] = sum(int(part) for part in told[_TIMES])
            children[int(told[_PARENT])].append(number)
        except (OSError, ValueError, IndexError):
            continue  # it has ended meanwhile
    family = [os.getpid() if pid is None else pid]
    if family[0] not in ticks:
        return None
    for one in family:  # it grows while it is read
        family += children[one]
    return sum(ticks.get(one, 0) for one in family) / os.sysconf("SC_CLK_TCK")
