"""A small checkpoint of a release, kept as a file: later versions must continue from it.

`python -m tests.helpers.kept_checkpoint NAME` makes one by the code at hand. Do so once for each
release, before the first change to the format of a checkpoint that comes after it.
"""

import sys
import tempfile
import zipfile
from collections import defaultdict
from pathlib import Path

import pyarrow as pa

import tidegate as tg
from tests.helpers.crash import crash_after
from tidegate.spark.batch.step import Step
from tidegate.workload.keys import parse_keys
from tidegate.workload.parse import parse_profile
from tidegate.workload.rows import RowColumns, rows_between

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
PROFILE, KEYS, SEED, SECONDS = "constant:50", "uniform:20", 7, 20.0
_CRASHES_IN = 2


def visits(rows: pa.Table, state: pa.Table) -> tg.Update:
    """A function of a user's own: how many rows a key had, and whether it is an even one."""
    before = dict(zip(state["key"].to_pylist(), state["n"].to_pylist(), strict=True))
    counts: dict[int, int] = defaultdict(int)
    for key in rows["key"].to_pylist():
        counts[key] += 1
    table = pa.table(
        {
            "key": pa.array(list(counts), pa.int64()),
            "n": pa.array([before.get(key, 0) + n for key, n in counts.items()], pa.int64()),
            "even": pa.array([key % 2 == 0 for key in counts], pa.bool_()),
        }
    )
    return tg.Update(output=table.select(["key", "n"]), upserts=table)


def flow(spark):
    """Two segments: totals, windows and a function of one's own, and a count behind a cut."""
    source = tg.pipeline(
        "kept",
        tg.arrivals(spark, PROFILE, keys=KEYS, seed=SEED, seconds=SECONDS, partitions=2),
        arrival="timestamp",
    )
    totals = source.keyed("totals", tg.sum("seq", as_="total"), key="key", shards=8)
    source.keyed(
        "windows",
        tg.window(tg.count(), every="2 seconds"),
        key="key",
        shards=8,
    ).to("noop")
    source.keyed(
        "visits",
        visits,
        key="key",
        state="n long, even boolean",
        output="key long, n long",
        shards=8,
    ).to("noop")
    return totals.cut("between").keyed("seen", tg.count(as_="n"), key="key", shards=8)


def all_rows() -> RowColumns:
    """All rows of the source, in their order."""
    profile = parse_profile(PROFILE)
    return rows_between(profile, parse_keys(KEYS), SEED, 0, profile.count(round(SECONDS * 1000)))


def expected(count: int | None = None) -> tuple[dict[int, int], dict[int, int]]:
    """For each key its total and its visits, after so many rows or all of them."""
    rows = all_rows()
    totals: dict[int, int] = defaultdict(int)
    visited: dict[int, int] = defaultdict(int)
    for key, seq in list(zip(rows.key.tolist(), rows.seq.tolist(), strict=True))[:count]:
        totals[key] += seq
        visited[key] += 1
    return dict(totals), dict(visited)


def expected_windows(start_ms: int) -> dict[tuple[int, int], int]:
    """The rows of each key in each window, which is named by its start in microseconds."""
    rows, found = all_rows(), defaultdict(int)
    for key, us in zip(rows.key.tolist(), rows.arrival_us.tolist(), strict=True):
        at_us = start_ms * 1000 + us
        found[key, at_us - at_us % 2_000_000] += 1
    return dict(found)


def unpacked(name: str, directory: Path) -> Path:
    """The checkpoint of a release as a directory of its own."""
    with zipfile.ZipFile(FIXTURES / f"{name}.zip") as archive:
        archive.extractall(directory)
    return directory


def make(name: str) -> None:
    """Run the pipeline until it crashes in the middle of a batch, and keep what it leaves."""
    spark = tg.session("local[2]", "kept checkpoint")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "ck"
        run = flow(spark).start(str(place), tasks=2, trigger="500 milliseconds")
        crash_after(run, Step.RAN, at_batch=_CRASHES_IN)
        try:
            run.awaitTermination()
        except tg.TidegateError as error:
            print(error)
        run.stop()
        with zipfile.ZipFile(
            FIXTURES / f"{name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9
        ) as archive:
            for path in sorted(place.rglob("*")):
                if path.is_file() and not path.name.endswith(".crc"):
                    archive.write(path, str(path.relative_to(place)))
                    print(path.relative_to(place), path.stat().st_size)
    spark.stop()


if __name__ == "__main__":
    make(sys.argv[1])
