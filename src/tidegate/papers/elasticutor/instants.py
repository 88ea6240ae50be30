"""Figure 7: the throughput of every second while the keys are shuffled twice a minute."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from tidegate.apps.micro.options import MicroOptions
from tidegate.apps.micro.throughput import measure_throughput
from tidegate.apps.paradigms import OURS, RESOURCE_CENTRIC, STATIC
from tidegate.apps.work_done import WorkDone, averaged
from tidegate.benching import Aim, at_least, at_most
from tidegate.papers.elasticutor.dynamics import PARADIGMS, WARM, all_right
from tidegate.papers.elasticutor.rotation import in_turns, warm_up
from tidegate.papers.elasticutor.sessions import LOCAL, SHARDS, TASKS
from tidegate.papers.elasticutor.skews import asked_skew
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.papers.sessions import spark_on
from tidegate.view.pages.paper import Curve, Picture

OMEGA, SECONDS, ROUNDS = 2.0, 90.0, 2
QUICK_OMEGA, QUICK_SECONDS = 8.0, 18.0
"""In a short run no shuffle would come at the paper's omega."""
LOW = 0.9
"""A second below this share of the median is a low one."""
PAPERS_LOW_S = {RESOURCE_CENTRIC: "10 to 20", OURS: "1 to 3"}
"""How long the throughput is degraded after a shuffle, as the text says."""
Found = Mapping[str, Sequence[WorkDone]]
"""The runs of each paradigm."""


def run(asked: Asked) -> Findings:
    """Measure the three paradigms one after the other."""
    omega = QUICK_OMEGA if asked.quick else OMEGA
    seconds = QUICK_SECONDS if asked.quick else SECONDS
    skew = asked_skew(asked.extra)
    found: dict[str, list[WorkDone]] = {paradigm: [] for paradigm in PARADIGMS}
    with spark_on(LOCAL) as spark:
        warm_up(spark)
        turns = list(in_turns(PARADIGMS, 1 if asked.quick else ROUNDS))
        for paradigm in asked.progress.each(turns, str):
            micro = MicroOptions(skew=skew, omega=omega, shards=SHARDS)
            done = measure_throughput(
                spark, paradigm, micro, tasks=TASKS, seconds=seconds, warm_batches=WARM
            )
            found[paradigm].append(done)
            asked.say(
                f"{paradigm}: {done.mean_rows_per_s:,.0f} rows/s, lowest second"
                f" {dip(done.rows_per_s):.2f} of the median, {len(done.breaks_s)} restarts"
            )
    first = {paradigm: runs[0] for paradigm, runs in found.items()}
    title = f"Throughput at omega = {omega:g}, zipf {skew:g}, first run of each"
    return Findings(
        compared=tuple(compared(found)),
        aims=tuple(aims(found)),
        pictures=(every_second(first, title, "rows per second"),),
        notes=(
            f"zipf {skew:g}, omega {omega:g}, {TASKS} tasks that wait 1 ms for a tuple. The paper"
            " has zipf 0.5 on 256 cores, which costs static routes more than it would here.",
            f"A second is low if it has less than {LOW:.0%} of the run's median throughput. Low"
            " seconds are counted from a shuffle until two seconds in a row are not low. Static"
            " routes do not recover: some hot keys suit them and some do not.",
            "The rows of a micro-batch are spread evenly over its time.",
        ),
    )


def dip(series: Sequence[float]) -> float:
    """The lowest second over the median one; 1 without any."""
    median = float(np.median(series)) if len(series) else 0.0
    return float(min(series)) / median if median > 0.0 else 1.0


def low_seconds(series: Sequence[float], shuffled_s: Sequence[float]) -> list[int]:
    """For each shuffle, the seconds with less than `LOW` of the median throughput that follow it.

    They are counted until two seconds in a row are not low, or the next shuffle comes.
    """
    if not len(series):
        return []
    low = np.asarray(series) < LOW * float(np.median(series))
    begins = [int(at_s) for at_s in shuffled_s]
    found = []
    for begin, end in pairwise((*begins, len(low))):
        count = calm = 0
        for second in low[begin:end]:
            count, calm = count + int(second), 0 if second else calm + 1
            if calm == 2:
                break
        found.append(count)
    return found


def mean_dip(runs: Sequence[WorkDone]) -> float:
    """The lowest second over the median one, the mean over several runs."""
    return float(np.mean([dip(one.rows_per_s) for one in runs]))


def compared(found: Found) -> list[Compared]:
    """What the text says of the figure, and ours."""
    rows = []
    for paradigm, runs in found.items():
        done = averaged(runs)
        low = [one for run in runs for one in low_seconds(run.rows_per_s, run.shuffled_s)]
        theirs = PAPERS_LOW_S.get(paradigm)
        mean_low = round(float(np.mean(low)), 1) if low else None
        rows += [
            Compared(f"{paradigm}: rows/s, mean", None, round(done.mean_rows_per_s)),
            Compared(f"{paradigm}: shuffles seen", None, len(low)),
            Compared(f"{paradigm}: low seconds after a shuffle, mean", theirs, mean_low),
            Compared(f"{paradigm}: lowest second over median", None, round(mean_dip(runs), 3)),
            Compared(
                f"{paradigm}: longest batch over median", None, round(done.longest_over_median, 2)
            ),
        ]
    return rows


def aims(found: Found) -> list[Aim]:
    """Ours is to pause less than the resource-centric way."""
    ours, central, static = (averaged(found[one]) for one in (OURS, RESOURCE_CENTRIC, STATIC))
    return [
        at_most(
            "longest batch over median, ours over resource-centric",
            ours.longest_over_median / max(central.longest_over_median, 1e-9),
            1.0,
        ),
        at_least(
            "lowest second over median, ours less resource-centric",
            mean_dip(found[OURS]) - mean_dip(found[RESOURCE_CENTRIC]),
            0.0,
        ),
        at_least(
            "throughput, ours over static",
            ours.mean_rows_per_s / max(static.mean_rows_per_s, 1e-9),
            1.0,
        ),
        all_right(run for runs in found.values() for run in runs),
    ]


def every_second(found: Mapping[str, WorkDone], title: str, label: str) -> Picture:
    """What each paradigm got done in every second."""
    lines = tuple(
        Curve(paradigm, tuple(float(at) for at in range(len(done.rows_per_s))), done.rows_per_s)
        for paradigm, done in found.items()
    )
    return Picture(title, "second", label, lines)
