"""DRS's closed loop on Spark: a wrong split finds the right one, and cores follow the input rate.

Figures 8 and 9 of the paper, on a chain of three operators like its logo detection. Each operator
is a segment of its own, so that they work at the same time as in Storm. Operators sleep for every
row, so that 24 tasks speed up on a machine with few cores. Scaled: ten times the paper's rates with
a tenth of its service times, and a paper's minute is a few seconds here.

Options: `--minute SECONDS` (a paper's minute here), `--t-max SECONDS` (for figure 9), `--figure 8`
or `9` (only this one), `--model mmk` or `gigk`.
"""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tidegate.apps.running import run_batches
from tidegate.apps.waiting import waiting_map
from tidegate.benching import Aim, Bench, Options, at_least, at_most
from tidegate.control.allocation.allocate import assign
from tidegate.control.drs_options import MODELS
from tidegate.errors import AskedWrongly, nearest
from tidegate.models.queueing.stations import Queues
from tidegate.papers.drs.timeline import Timeline
from tidegate.papers.splits import shown
from tidegate.pipelines.stream import Stream, pipeline
from tidegate.spark.session import session
from tidegate.spark.sources.arrivals import arrivals
from tidegate.spark.start import start
from tidegate.workload.profile import Profile, constant, steps

OPTIONS = ("minute", "t-max", "figure", "model")
FIGURES = ("8", "9")
NAMES = ("extract", "match", "aggregate")
SCALE = 10.0
"""Rows per tuple of the paper: its rates times this, its service times divided by it."""
FIXED_RATE, FIXED_SERVICE = 13.0, (1.6, 1.45, 40.0)
"""Frames per second (V-B), and those that one core serves: algorithm 1 gives 10:11:1 of 22."""
K_MAX = 22
WRONG = ((8, 12, 2), (11, 9, 2))
"""Figure 8's two wrong splits; the third run begins with the right one."""
CHANGING_SERVICE = (3.0, 2.0, 40.0)
"""Frames per second of one core in figure 9, so that 18 of them stay below T_max with the 22 cores
that the paper had, a micro-batch's fixed costs included."""
CHANGES = ((0.0, 6.0), (6.0, 12.0), (21.0, 6.0), (34.0, 18.0))
"""Minutes and frames per second of figure 9 (a)."""
T_MIN_SHARE = 0.45
_WINDOW = 6
_MINUTES_8, _MINUTES_9 = 27, 45
"""The length of a run of figure 8 and of figure 9, in minutes of the paper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What to run."""

    minute_s: float
    """How long a paper's minute is here."""
    t_max_s: float
    figures: tuple[str, ...]
    model: str


def run(options: Options) -> Bench:
    """Figure 8, then figure 9 (a) with windows of 6 and of 3 minutes."""
    asked = asked_of(options)
    results: list[dict[str, Any]] = []
    aims: list[Aim] = []
    spark = session("local[24]", "bench-drs")
    options.progress.doing("warming up")
    _warm_up(spark)
    options.progress.expect(_minutes(asked.figures, quick=options.quick))
    if "8" in asked.figures:
        aims += _figure_8(spark, options, results, asked.minute_s, asked.model)
    if "9" in asked.figures:
        aims += _figure_9(spark, options, results, asked.minute_s, asked.t_max_s, asked.model)
    return Bench("drs", results, aims)


def _minutes(figures: Sequence[str], *, quick: bool) -> int:
    """The minutes of all runs of these figures."""
    eight = _MINUTES_8 * (1 + len(WRONG[:1] if quick else WRONG))
    nine = _MINUTES_9 * len(_windows(quick=quick))
    return eight * ("8" in figures) + nine * ("9" in figures)


def _windows(*, quick: bool) -> tuple[int, ...]:
    return (6,) if quick else (6, 3)


def asked_of(options: Options) -> Asked:
    """The options as they are used; wrong ones are refused before Spark is started."""
    for name in options.extra:
        if name not in OPTIONS:
            raise AskedWrongly(f"bench drs has no option '--{name}'{nearest(name, OPTIONS)}")
    figure, model = options.extra.get("figure"), options.extra.get("model", "mmk")
    if figure is not None and figure not in FIGURES:
        raise AskedWrongly(f"there is no figure '{figure}' here; give {' or '.join(FIGURES)}")
    if model not in MODELS:
        raise AskedWrongly(f"there is no model '{model}'{nearest(model, MODELS)}")
    return Asked(
        minute_s=_seconds(options, "minute", 3.0 if options.quick else 5.0),
        t_max_s=_seconds(options, "t-max", 8.0),
        figures=FIGURES if figure is None else (figure,),
        model=model,
    )


def _seconds(options: Options, name: str, usual_s: float) -> float:
    given = options.extra.get(name, str(usual_s))
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 600.0:
        raise AskedWrongly(f"--{name} {given} is not possible; give 0.1 to 600 seconds")
    return seconds


def right_split(rate: float, service: Sequence[float], cores: int) -> tuple[int, ...]:
    """Algorithm 1 for the true rates."""
    best = assign(Queues.of([rate] * len(service), list(service)), cores)
    return tuple(int(count) for count in best.cores)


def _figure_8(
    spark: SparkSession,
    options: Options,
    results: list[dict[str, Any]],
    minute_s: float,
    model: str,
) -> list[Aim]:
    right = right_split(FIXED_RATE, FIXED_SERVICE, K_MAX)
    aims = []
    for split in (right, *(WRONG[:1] if options.quick else WRONG)):
        options.progress.step(
            f"figure 8: {K_MAX} cores as {shown(split)}, the right split is {shown(right)}",
            _MINUTES_8,
        )
        ran = _run(
            spark,
            constant(SCALE * FIXED_RATE),
            FIXED_SERVICE,
            split,
            seconds=_MINUTES_8 * minute_s,
            minute_s=minute_s,
            policy=f"drs-fixed(model={model}, w={_WINDOW})",
            between_minutes=14,
            cores=K_MAX,
            target_s=4.0,
        )
        end = ran.splits[-1][1]
        results.append(
            {
                "figure": "8",
                "began as": shown(split),
                "ended as": shown(end),
                "right": shown(right),
                "changes (minute: split)": ran.shown(),
                "latency_ms, minutes 2-14": ran.latency_ms(2, 14),
                "latency_ms, minutes 15-27": ran.latency_ms(15, 27),
                "paper": "the right split from minute 14 on, in one re-allocation",
            }
        )
        off = sum(abs(a - b) for a, b in zip(end, right, strict=True)) // 2
        changes = len(ran.splits) - 1
        aims.append(at_most(f"cores in the wrong place at the end, from {shown(split)}", off, 0))
        aims.append(at_most(f"re-allocations, from {shown(split)}", changes, split != right))
    return aims


def _figure_9(
    spark: SparkSession,
    options: Options,
    results: list[dict[str, Any]],
    minute_s: float,
    t_max_s: float,
    model: str,
) -> list[Aim]:
    aims = []
    profile = steps([(at * minute_s, SCALE * rate) for at, rate in CHANGES])
    for window in _windows(quick=options.quick):
        options.progress.step(
            f"figure 9 (a): 6, 12, 6, 18 frames/s, w = T_ra = {window} minutes", _MINUTES_9
        )
        t_min_ms = 1000 * T_MIN_SHARE * t_max_s
        ticks = max(round(window * minute_s), 1)
        ran = _run(
            spark,
            profile,
            CHANGING_SERVICE,
            (3, 5, 1),
            seconds=_MINUTES_9 * minute_s,
            minute_s=minute_s,
            policy=f"drs(model={model}, w={ticks}, t_min={t_min_ms:.0f}ms)",
            between_minutes=window,
            cores=(3, 24),
            target_s=t_max_s,
        )
        cores = [ran.cores_at(at - 0.1) for at in (*(at for at, _ in CHANGES[1:]), 45.0)]
        results.append(
            {
                "figure": "9 (a)",
                "w, T_ra (minutes)": window,
                "T_max, T_min (ms)": f"{1000 * t_max_s:.0f}, {t_min_ms:.0f}",
                "changes (minute: split)": ran.shown(),
                "cores at the end of 6, 12, 6, 18": cores,
                "latency_ms of 6, 12, 6, 18": [
                    ran.latency_ms(begin, end)
                    for begin, end in ((2, 6), (6, 21), (21, 34), (34, 45))
                ],
                "paper": "(w = 6) 3:5:1 to 4:6:1 at 12, fewer at 26, more at 35",
            }
        )
        aims.append(at_least(f"cores added at 12 frames/s, w {window}", cores[1] - cores[0], 1))
        aims.append(at_least(f"cores given back at 6, w {window}", cores[1] - cores[2], 1))
        aims.append(at_least(f"cores added at 18, w {window}", cores[3] - cores[2], 1))
    return aims


def _flow(
    spark: SparkSession, profile: Profile, service: Sequence[float], seconds: float
) -> Stream:
    """The chain, with a cut between the operators."""
    stream: Stream = pipeline(
        "drs", arrivals(spark, profile, seconds=seconds, partitions=1), arrival="timestamp"
    )
    for number, (name, served) in enumerate(zip(NAMES, service, strict=True)):
        if number:
            stream = stream.cut(f"to-{name}")
        stream = stream.map(waiting_map(1.0 / (SCALE * served)), name=name, tasks=(1, 24))
    return stream.to(_nowhere)


def _nowhere(rows: DataFrame, batch_id: int) -> None:
    rows.write.format("noop").mode("overwrite").save()


def _run(
    spark: SparkSession,
    profile: Profile,
    service: Sequence[float],
    split: tuple[int, ...],
    *,
    seconds: float,
    minute_s: float,
    policy: str,
    between_minutes: float,
    cores: int | tuple[int, int],
    target_s: float,
) -> Timeline:
    """Run the chain from this split on for some seconds."""
    with tempfile.TemporaryDirectory(prefix="tidegate-drs-") as directory:
        flow = _flow(spark, profile, service, seconds + 30.0)
        run = start(
            flow.graph,
            checkpoint=f"{directory}/checkpoint",
            target=f"{1000 * target_s:.0f} ms",
            cores=cores,
            policy=policy,
            between_changes=f"{1000 * between_minutes * minute_s:.0f} ms",
        )
        try:
            for name, tasks in zip(NAMES, split, strict=True):
                run.rescale(name, tasks)
            until = time.monotonic() + seconds
            while time.monotonic() < until and not run.awaitTermination(0.5):
                pass
        finally:
            run.stop()
        assert run.loop is not None
        return Timeline(list(run.loop.records), NAMES, minute_s)


def _warm_up(spark: SparkSession) -> None:
    with tempfile.TemporaryDirectory(prefix="tidegate-drs-") as directory:
        flow = _flow(spark, constant(100.0), (1000.0,) * 3, 600.0)
        run_batches(start(flow.graph, checkpoint=f"{directory}/warm", tasks=8), 10, 120.0)
