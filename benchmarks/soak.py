"""A changing load for a long time: memory, disk and decisions must not drift (`--minutes 20`).

The control loop runs the demo's pipeline under a load that swings and surges, with changing hot
keys. Driver memory is the JVM's heap after a collection and the Python process's resident set;
disk is the checkpoint without its state and its rotated records. Both are compared between the
second quarter of the run, when everything is warm, and the last.
"""

import gc
import itertools
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.surge import against_oracle
from pyspark.sql import SparkSession

from tidegate.apps.surge import CORES, TARGET_S, surge_flow, warm_up
from tidegate.apps.surge_source import OwnSource
from tidegate.benching import Aim, Bench, Options, at_least, at_most
from tidegate.commands.whatif_answer import answer
from tidegate.control.assembly import Assembly
from tidegate.control.record import Record
from tidegate.errors import AskedWrongly
from tidegate.spark.kafka.topic_load import TopicLoad
from tidegate.spark.loop.loop import ControlLoop
from tidegate.spark.session import session
from tidegate.spark.start import start
from tidegate.view.summary import summarise
from tidegate.workload.keys import parse_keys
from tidegate.workload.profile import Profile, steps

SAMPLE_S = 10.0
_SWING_S, _LEAP_S = 240.0, 360.0


def swinging(seconds: float) -> Profile:
    """A swing between 200 and 600 rows/s in four minutes, with surges to 800."""
    changes = []
    for second in range(int(seconds) + 1):
        rate = 400.0 + 200.0 * np.sin(2 * np.pi * second / _SWING_S)
        if second % _LEAP_S >= _LEAP_S * 5 / 6:
            rate = 800.0
        changes.append((float(second), float(round(rate))))
    return steps(changes)


def minutes_of(options: Options) -> float:
    """The length of the run from the options."""
    given = options.extra.get("minutes", "1" if options.quick else "20")
    try:
        minutes = float(given)
    except ValueError:
        minutes = 0.0
    if not 0.5 <= minutes <= 10_000.0:
        raise AskedWrongly(f"--minutes {given} is not possible; give 0.5 to 10000")
    return minutes


@dataclass(frozen=True, slots=True)
class Sample:
    """Memory and disk use of the driver at one time."""

    at_s: float
    heap_bytes: int
    resident_bytes: int
    state_bytes: int
    other_bytes: int
    other_files: int


def sample(spark: SparkSession, checkpoint: Path) -> Sample:
    """Collect garbage in the JVM and in Python, then measure."""
    gc.collect()
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    jvm.System.gc()
    runtime = jvm.Runtime.getRuntime()
    heap = int(runtime.totalMemory() - runtime.freeMemory())
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    state = other = files = 0
    for file in checkpoint.rglob("*"):
        try:
            size = file.stat().st_size if file.is_file() else 0
        except FileNotFoundError:  # it was removed in the meantime
            continue
        if "state" in file.relative_to(checkpoint).parts:
            state += size
        elif file.name.startswith("records"):
            continue  # rotated records have a fixed total size (tidegate.recording)
        else:
            other += size
            files += file.is_file()
    return Sample(time.monotonic(), heap, pages * 4096, state, other, files)


def quarter(samples: list[Sample], number: int, what: Callable[[Sample], float]) -> float:
    """The median over one quarter of the run."""
    first, last = samples[0].at_s, samples[-1].at_s
    width = (last - first) / 4 or 1.0
    inside = [
        what(one)
        for one in samples
        if first + number * width <= one.at_s <= first + (number + 1) * width
    ]
    return float(np.median(inside))


def reversals_a_minute(records: list[Record]) -> float:
    """The most reversals (scaling out after in, or in after out) within any minute."""
    changes: list[tuple[float, int]] = []
    before: int | None = None
    for record in records:
        cores = record.measurement.cores_asked
        if before is not None and cores != before:
            changes.append((record.measurement.at_s, 1 if cores > before else -1))
        before = cores
    turns = [at_s for (_, one), (at_s, other) in itertools.pairwise(changes) if one != other]
    return float(max((sum(at <= one < at + 60.0 for one in turns) for at in turns), default=0))


def run(options: Options) -> Bench:
    """Run the pipeline, and sample memory, disk and decisions."""
    seconds = 60.0 * minutes_of(options)
    spark = session("local[16]", "bench-soak")
    profile = swinging(seconds)
    hot_keys = ",".join(f"{at:g}" for at in np.arange(90.0, seconds, 90.0))
    keys = parse_keys(f"zipf:2000,0.8@{hot_keys}" if hot_keys else "zipf:2000,0.8")
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory(prefix="tidegate-soak-") as scratch:
        options.progress.doing("warming up")
        source = OwnSource(TopicLoad(profile, keys, seconds, seed=1))
        warm_up(source.warm(spark), Path(scratch) / "warm-up", CORES[1])
        checkpoint = Path(scratch) / "soak"
        live = start(
            surge_flow(source.stream(spark)).graph,
            checkpoint=str(checkpoint),
            tasks=CORES[0],
            target=f"{TARGET_S:g} seconds",
            cores=CORES,
        )
        assert isinstance(live.loop, ControlLoop)
        until_s = time.monotonic() + seconds
        options.progress.expect(seconds, takes_s=seconds)
        options.progress.step("running", seconds)
        try:
            while time.monotonic() < until_s and not live.awaitTermination(SAMPLE_S):
                samples.append(sample(spark, checkpoint))
                options.progress.doing(f"running on {live.loop.negotiator.asked} cores")
        finally:
            live.stop()
        # The loop remembers its last records only, and the first one told the options of the run.
        records, assembly = list(live.loop.records), live.loop.assembly
    return judged(records, assembly, samples, options)


def judged(
    records: list[Record], assembly: Assembly, samples: list[Sample], options: Options
) -> Bench:
    """Compare the end of a run with its beginning, and what it used with the oracle."""
    found = summarise(records, warm_up_s=20.0, static_cores=CORES[1])
    figures: dict[str, Callable[[Sample], float]] = {
        "JVM heap after collection": lambda one: one.heap_bytes,
        "Python resident set": lambda one: one.resident_bytes,
        "checkpoint without state": lambda one: one.other_bytes,
        "checkpoint files without state": lambda one: one.other_files,
    }
    results: list[dict[str, Any]] = []
    aims: list[Aim] = []
    for name, what in figures.items():
        early, late = quarter(samples, 1, what), quarter(samples, 3, what)
        results.append({"what": name, "second_quarter": early, "last_quarter": late})
        aims.append(at_most(f"{name}, last over second quarter", late / max(early, 1.0), 1.15))
    results.append({"what": "reversals", "in all": found.reversals})
    results.append({"what": "reversals, most in a minute", "in all": reversals_a_minute(records)})
    aims.append(at_most("reversals a minute", found.reversals_a_minute, 1))
    aims.append(at_least("seconds within target", found.within_target or 0.0, 0.9))
    results.append({"what": "core-seconds", "in all": round(found.core_seconds, 1)})
    options.progress.doing("simulating it again")
    try:
        again = answer(records, assembly, assembly, warm_up_s=20.0, seeds=3)
    except AskedWrongly as error:  # what was measured is not lost with it
        options.say(f"the run cannot be simulated: {error}")
        aims.append(at_least("the run can be simulated", 0, 1))
        return Bench("soak", results, aims)
    least = again.oracle
    results.append({"what": "core-seconds, oracle", "in all": round(least.core_seconds, 1)})
    results.append({"what": "core-seconds, whatif", "in all": round(again.again.core_seconds, 1)})
    aims += against_oracle(found.core_seconds, least)
    aims.append(at_most("whatif: points off", abs(again.off_points), 3.0))
    aims.append(at_most("whatif: core-seconds off", abs(again.off_cost), 0.07))
    return Bench("soak", results, aims)
