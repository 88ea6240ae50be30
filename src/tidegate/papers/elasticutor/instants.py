"""Figure 7: the throughput of every second while the keys are shuffled twice a minute."""

from collections.abc import Mapping, Sequence

import numpy as np

from tidegate.apps.micro.options import MicroOptions
from tidegate.apps.micro.throughput import measure_throughput
from tidegate.apps.paradigms import OURS, RESOURCE_CENTRIC, STATIC
from tidegate.apps.work_done import WorkDone
from tidegate.benching import Aim, at_least, at_most
from tidegate.papers.elasticutor.dynamics import PARADIGMS, WARM, all_right
from tidegate.papers.elasticutor.sessions import LOCAL, TASKS, spark_on
from tidegate.papers.elasticutor.skews import asked_skew
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.view.pages.paper import Curve, Picture

OMEGA, SECONDS = 2.0, 60.0
QUICK_OMEGA, QUICK_SECONDS = 8.0, 18.0
"""In a short run no shuffle would come at the paper's omega."""
LOW = 0.9
"""A second below this share of the median is a low one."""
PAPERS_LOW_S = {RESOURCE_CENTRIC: "10 to 20", OURS: "1 to 3"}
"""How long the throughput is degraded after a shuffle, as the text says."""


def run(asked: Asked) -> Findings:
    """Measure the three paradigms one after the other."""
    omega = QUICK_OMEGA if asked.quick else OMEGA
    seconds = QUICK_SECONDS if asked.quick else SECONDS
    skew = asked_skew(asked.extra)
    found: dict[str, WorkDone] = {}
    with spark_on(LOCAL) as spark:
        for paradigm in PARADIGMS:
            micro = MicroOptions(skew=skew, omega=omega)
            found[paradigm] = done = measure_throughput(
                spark, paradigm, micro, tasks=TASKS, seconds=seconds, warm_batches=WARM
            )
            asked.say(
                f"{paradigm}: {done.mean_rows_per_s:,.0f} rows/s, lowest second"
                f" {dip(done.rows_per_s):.2f} of the median, {len(done.breaks_s)} restarts"
            )
    shuffles = seconds * omega / 60.0
    return Findings(
        compared=tuple(compared(found, shuffles)),
        aims=tuple(aims(found)),
        pictures=(picture(found, omega, skew),),
        notes=(
            f"zipf {skew:g}, omega {omega:g}, {TASKS} tasks that wait 1 ms for a tuple. The paper"
            " has zipf 0.5 on 256 cores, which costs static routes more than it would here.",
            "All begin with an even route, so the first seconds of the elastic ways count as well.",
            "The rows of a micro-batch are spread evenly over its time.",
        ),
    )


def dip(series: Sequence[float]) -> float:
    """The lowest second over the median one; 1 without any."""
    median = float(np.median(series)) if len(series) else 0.0
    return float(min(series)) / median if median > 0.0 else 1.0


def low_seconds(series: Sequence[float]) -> int:
    """Seconds that have less than `LOW` of the median throughput."""
    if not len(series):
        return 0
    return int(np.sum(np.asarray(series) < LOW * float(np.median(series))))


def compared(found: Mapping[str, WorkDone], shuffles: float) -> list[Compared]:
    """What the text says of the figure, and ours."""
    rows = []
    for paradigm, done in found.items():
        low = low_seconds(done.rows_per_s) / max(shuffles, 1.0)
        theirs = PAPERS_LOW_S.get(paradigm)
        rows += [
            Compared(f"{paradigm}: rows/s, mean", None, round(done.mean_rows_per_s)),
            Compared(f"{paradigm}: low seconds per shuffle", theirs, round(low, 1)),
            Compared(
                f"{paradigm}: lowest second over median", None, round(dip(done.rows_per_s), 3)
            ),
            Compared(
                f"{paradigm}: longest batch over median", None, round(done.longest_over_median, 2)
            ),
        ]
    return rows


def aims(found: Mapping[str, WorkDone]) -> list[Aim]:
    """Ours is to pause less than the resource-centric way."""
    ours, central, static = found[OURS], found[RESOURCE_CENTRIC], found[STATIC]
    return [
        at_most(
            "longest batch over median, ours over resource-centric",
            ours.longest_over_median / max(central.longest_over_median, 1e-9),
            1.0,
        ),
        at_least(
            "lowest second over median, ours less resource-centric",
            dip(ours.rows_per_s) - dip(central.rows_per_s),
            0.0,
        ),
        at_least(
            "throughput, ours over static",
            ours.mean_rows_per_s / max(static.mean_rows_per_s, 1e-9),
            1.0,
        ),
        all_right(found.values()),
    ]


def picture(found: Mapping[str, WorkDone], omega: float, skew: float) -> Picture:
    """Rows of every second."""
    lines = tuple(
        Curve(paradigm, tuple(float(at) for at in range(len(done.rows_per_s))), done.rows_per_s)
        for paradigm, done in found.items()
    )
    return Picture(
        f"Throughput at omega = {omega:g}, zipf {skew:g}", "second", "rows per second", lines
    )
