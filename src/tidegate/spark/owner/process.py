"""A process by name, so that another one can tell whether it still runs."""

import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Process:
    """A process on some machine. Its fields tell it apart from a later one with the same pid."""

    host: str
    pid: int
    machine: str = ""
    """The boot of the machine and the pid namespace: a container's pid 1 is not its host's."""
    started: str = ""
    """When the kernel started it, in ticks since boot."""

    @classmethod
    def here(cls) -> "Process":
        """This process."""
        pid = os.getpid()
        return cls(socket.gethostname(), pid, _machine(), _started(pid))

    @property
    def gone(self) -> bool:
        """Whether it has certainly ended. False if it runs, or if nobody can tell from here."""
        if not self.machine or self.machine != _machine():
            return False
        return _started(self.pid) != self.started

    def to_json(self) -> dict[str, Any]:
        """The form in the checkpoint."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "Process":
        """The reverse of `to_json`."""
        return cls(document["host"], document["pid"], document["machine"], document["started"])

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def _machine() -> str:
    """Empty where the system does not say, as on macOS; then only signs of life are judged."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    try:
        # The command's name may hold spaces and brackets; the start time is the 20th field after.
        after = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if after[0] in "ZX" else after[19]
