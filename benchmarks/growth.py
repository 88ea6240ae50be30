"""What Tidegate adds to a micro-batch, against tasks, shards, operators, keys and batches.

Each curve has the exponent that fits it best, by least squares on logarithms. All but the last
three are measured without Spark, with the code that runs on it (`growth_bodies/imitated.py`), in
milliseconds of the processor. The last ones are Spark on two cores, beside plain Spark of the same
shape. `--curve tasks,age` measures some of them, `--keys 100000000` adds a state of that many keys
(it needs 8 GB of disk and half an hour), `--place DIR` says where files go.
"""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.growth_bodies import age, keys, on_spark
from benchmarks.growth_bodies.curve import Curve, curves
from benchmarks.growth_bodies.imitated import ImitatedPipeline, Shape, parts_of

from tidegate.benching import Aim, Bench, Options
from tidegate.errors import AskedWrongly, nearest
from tidegate.spark.session import session

_WARM, _BATCHES = 14, 8
_KNOWN = ("curve", "keys", "place")
_MEMORY = Path("/dev/shm")
"""A filesystem in memory, where there is one."""

Point = tuple[float, dict[str, float]]


def imitated(root: Path, x: float, shape: Shape) -> Point:
    """One point of a curve: the median of some batches, once the state has settled."""
    folder = root / "imitated"
    pipeline = ImitatedPipeline(folder, shape)
    for _ in range(_WARM):
        pipeline.batch()
    parts = parts_of([pipeline.batch() for _ in range(_BATCHES)])
    shutil.rmtree(folder)
    parts["all tasks"] = parts["task"] * shape.tasks * shape.operators
    return x, parts


def by_tasks(root: Path, options: Options) -> list[Curve]:
    """2 to 512 tasks."""
    counts = (2, 16, 64) if options.quick else (2, 8, 32, 128, 512)
    return curves("tasks", [imitated(root, n, Shape(tasks=n)) for n in counts])


def by_shards(root: Path, options: Options) -> list[Curve]:
    """256 to 8,192 shards, on four tasks."""
    counts = (256, 2048) if options.quick else (256, 512, 1024, 2048, 4096, 8192)
    return curves("shards", [imitated(root, n, Shape(shards=n)) for n in counts])


def by_operators(root: Path, options: Options) -> list[Curve]:
    """1 to 20 keyed operators."""
    counts = (1, 4) if options.quick else (1, 2, 5, 10, 20)
    return curves("operators", [imitated(root, n, Shape(operators=n)) for n in counts])


def by_keys(root: Path, options: Options) -> list[Curve]:
    """10^4 to 10^7 keys, and more if asked for."""
    counts = [10_000, 100_000] if options.quick else [10_000, 100_000, 1_000_000, 10_000_000]
    points: list[Point] = []
    for count in [*counts, *_more_keys(options)]:
        parts, size = keys.touched(root / "keys", count)
        shutil.rmtree(root / "keys")
        options.say(f"{count:,} keys: {size / 2**20:,.0f} MiB of state")
        points.append((float(count), parts))
    return curves("keys", points)


def by_age(root: Path, options: Options) -> list[Curve]:
    """10^2 to 10^5 batches on one checkpoint."""
    decades = [100, 1_000] if options.quick else [100, 1_000, 10_000, 100_000]
    return curves("batches", age.ages(root / "age", decades, options.say))


def on_spark_by(name: str, quick: tuple[int, ...], full: tuple[int, ...]) -> Any:
    """A curve on Spark: what is varied, and its values."""

    def measured(root: Path, options: Options) -> list[Curve]:
        spark = session("local[2]", "bench-growth")
        counts = quick if options.quick else full
        folder = root / f"spark-{name}"
        points: list[Point] = []
        for count in counts:
            shape = {name: count}
            points.append(
                (float(count), on_spark.compared(spark, folder, say=options.say, **shape))
            )
        spark.stop()
        return curves(f"{name} on Spark", points)

    return measured


CURVES: dict[str, Callable[[Path, Options], list[Curve]]] = {
    "tasks": by_tasks,
    "shards": by_shards,
    "operators": by_operators,
    "keys": by_keys,
    "age": by_age,
    "spark-tasks": on_spark_by("tasks", (2, 16), (2, 8, 32, 128, 512)),
    "spark-shards": on_spark_by("shards", (256, 2048), (256, 1024, 8192)),
    "spark-operators": on_spark_by("operators", (1, 4), (1, 2, 5, 10, 20)),
}
_FLAT = {"shards", "batches", "shards on Spark"}
_JUDGED = {
    "tasks": ("driver", "all tasks"),
    "shards": ("driver", "task"),
    "operators": ("driver", "all tasks"),
    "keys": ("driver", "task, mean"),
    "batches": ("start", "commit", "tick", "list"),
    "tasks on Spark": ("added",),
    "shards on Spark": ("ours",),
    "operators on Spark": ("added",),
}
"""The parts that an aim is about; the others say where the time goes."""


def aims_of(found: list[Curve]) -> list[Aim]:
    """Nothing grows faster than linearly, and shards and age not at all beyond a tenth."""
    return [
        one.flat() if one.by in _FLAT else one.at_most_linear()
        for one in found
        if one.part in _JUDGED[one.by]
    ]


def asked_of(options: Options) -> list[str]:
    """The curves to measure; what is not known is refused."""
    for name in options.extra:
        if name not in _KNOWN:
            raise AskedWrongly(f"bench growth has no option '--{name}'{nearest(name, _KNOWN)}")
    names = options.extra.get("curve", ",".join(CURVES)).split(",")
    for name in names:
        if name not in CURVES:
            raise AskedWrongly(
                f"there is no curve '{name}'{nearest(name, CURVES)}; the curves are"
                f" {', '.join(CURVES)}"
            )
    _more_keys(options)
    return names


def _more_keys(options: Options) -> list[int]:
    given = options.extra.get("keys")
    if given is None:
        return []
    if not given.isdigit() or not 10**7 < int(given) <= 10**9:
        raise AskedWrongly(f"--keys {given} is not possible; give more than 10000000, up to 10^9")
    return [int(given)]


def place_of(options: Options) -> str | None:
    """Where files go: as asked, else into memory where that is possible."""
    given = options.extra.get("place")
    if given is not None and not Path(given).is_dir():
        raise AskedWrongly(f"--place {given} is not a directory; give one that exists")
    return given or (str(_MEMORY) if _MEMORY.is_dir() else None)


def run(options: Options) -> Bench:
    """Measure the curves one after the other."""
    names, found = asked_of(options), list[Curve]()
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-", dir=place_of(options)) as scratch:
        imitated(Path(scratch), 0.0, Shape())  # so that everything is imported and compiled
        for name in options.progress.each(names, lambda name: f"the curve '{name}'"):
            found += CURVES[name](Path(scratch), options)
    return Bench("growth", [one.row() for one in found], aims_of(found))
