"""The capacities that figure 6 measured, kept as files that other figures and commands take."""

from pathlib import Path

from tidegate.errors import AskedWrongly
from tidegate.models.capacity.measured import MeasuredCapacity, read_capacity
from tidegate.papers.last_results import DIRECTORY
from tidegate.papers.mst.spark_applications import CATALOGUE

KEPT = DIRECTORY / "mst-capacity"
CAPACITY_OPTION = {
    "capacity": f"a directory with capacity files, such as grep.json; default {KEPT.as_posix()}"
}


def keep_capacity(name: str, measured: MeasuredCapacity) -> Path:
    """Keep what was measured of an application; `start`, `backtest` and `whatif` take the file."""
    KEPT.mkdir(parents=True, exist_ok=True)
    file = KEPT / f"{name}.json"
    measured.write(file)
    return file


def kept_capacities(directory: str | None = None) -> dict[str, MeasuredCapacity]:
    """What was measured of the applications, by name; a directory that was asked for must exist."""
    place = KEPT if directory is None else Path(directory)
    if directory is not None and not place.is_dir():
        raise AskedWrongly(
            f"There is no directory {directory}: give one with capacity files, such as"
            f" {KEPT.as_posix()}, where fig6 keeps them."
        )
    files = {name: place / f"{name}.json" for name in CATALOGUE}
    return {name: read_capacity(file) for name, file in files.items() if file.is_file()}
