"""A small disk of its own that a test can fill up, where the system lets us mount one."""

import contextlib
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def can_mount(scratch: Path) -> bool:
    """Whether this process may mount a disk in memory."""
    with small_disk(scratch / "try", "64k") as disk:
        return disk is not None


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path | None]:
    """A directory on a disk of this size; None where mounting is not allowed."""
    place.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)],
        capture_output=True,
        check=False,
    )
    try:
        yield place if mounted.returncode == 0 else None
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", "--lazy", str(place)], check=False)


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """Fill a disk to the last byte; it has room again afterwards."""
    ballast = disk / "ballast"
    try:
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(b"0" * 4096)
        yield
    finally:
        ballast.unlink(missing_ok=True)
