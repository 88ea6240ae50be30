"""Figures 6 and 7: the sojourn under six splits of 22 cores, measured and by the models.

The station here is the micro-batch, so our recommendation comes from the micro-batch model. DRS's
own M/M/k and GI/G/k recommendations, from the same measurements, are shown beside it, and so is the
pipeline without cuts: one segment whose operators take turns, each with all the cores.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from scipy.stats import spearmanr

from tidegate.apps.application import Application
from tidegate.apps.catalogue import application
from tidegate.apps.run_application import ApplicationRun
from tidegate.benching import Aim, at_least, at_most
from tidegate.control.allocation.allocate import assign
from tidegate.control.record import Record
from tidegate.errors import AskedWrongly
from tidegate.models.queueing.stations import Model
from tidegate.papers.drs.runs import (
    K_MAX,
    SLOW_S,
    Wanted,
    papers_session,
    run,
    warm_up,
    wrong_answers,
)
from tidegate.papers.estimate import MicroBatchEstimate
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.papers.measured import Sojourns, after, queues_of
from tidegate.papers.splits import neighbours, shown
from tidegate.view.pages.paper import Curve, Picture

Split = tuple[int, ...]

PAPERS_SPLIT: dict[str, Split] = {"vld": (10, 11, 1), "fpd": (6, 13, 3)}
"""The splits that DRS recommended, which were measured to be the best."""
SPLITS = 6
NEAR = 1.05
"""A recommended split counts as the best if it is within this factor of it."""
SETTLED_S = SLOW_S + 20.0
"""Sojourns are judged from then on."""
NEAREST = 2
"""So many of the nearest splits are run."""
SLOWER = (1.35, 1.8, 2.3)
"""The others should take so many times as long as the recommended one."""
_NEIGHBOURS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class SixSplits:
    """What the runs of one application measured, and what the models say of the same splits."""

    app: str
    measured: dict[Split, Sojourns]
    modelled_s: dict[Split, float]
    """E[T] by the micro-batch model."""
    recommended: Split
    by_drs: dict[str, Split]
    """DRS's recommendation by model, from the same measurements."""
    by_drs_s: dict[Split, float]
    """E[T] by DRS's M/M/k model."""
    uncut: Sojourns
    wrong: tuple[str, ...] = ()

    @property
    def best(self) -> Split:
        """The split that was measured to be the best."""
        return min(self.measured, key=lambda split: self.measured[split].mean_s)

    @property
    def alike(self) -> float:
        """Spearman's rank correlation of the model with the measurement."""
        splits = list(self.measured)
        return spearman(
            [self.modelled_s[split] for split in splits],
            [self.measured[split].mean_s for split in splits],
        )

    @property
    def off(self) -> float:
        """The recommended split's sojourn over the best one's."""
        if self.recommended not in self.measured:
            return math.inf
        return self.measured[self.recommended].mean_s / self.measured[self.best].mean_s


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """The rank correlation of two series; not a number below three points."""
    return float(spearmanr(one, other).statistic) if len(one) > 2 else math.nan


def figure_6(asked: Asked) -> Findings:
    """Run both applications, or the one that `--app` names."""
    apps = asked_apps(asked)
    with papers_session("drs") as spark:
        found = [measure(spark, app, asked) for app in apps]
    return told(found)


def asked_apps(asked: Asked) -> list[Application]:
    """Both applications, or the one that the option `app` names."""
    name = asked.extra.get("app")
    if name is not None and name not in PAPERS_SPLIT:
        raise AskedWrongly(f"app={name}: give {' or '.join(PAPERS_SPLIT)}")
    apps = [application(one) for one in PAPERS_SPLIT if name in (None, one)]
    for app in apps:
        app.check()
    return apps


def measure(spark: SparkSession, app: Application, asked: Asked) -> SixSplits:
    """Measure at the paper's split, ask the model, then run its choice and its neighbours."""
    seconds = 45.0 if asked.quick else 80.0
    theirs = PAPERS_SPLIT[app.name]
    asked.say(f"{app.name}: warming up")
    warm_up(spark, app)
    asked.say(f"{app.name}: {shown(theirs)}, the paper's split")
    first = run(spark, Wanted(app=app, split=theirs, seconds=seconds))
    estimate = MicroBatchEstimate([_settled(first)])
    ours = recommended(estimate, len(theirs))
    asked.say(f"{app.name}: our model recommends {shown(ours)}")
    runs: dict[Split, ApplicationRun] = {theirs: first}
    for split in chosen_splits(theirs, ours, estimate.of_split, 3 if asked.quick else SPLITS):
        if split not in runs:
            asked.say(f"{app.name}: {shown(split)}")
            runs[split] = run(spark, Wanted(app=app, split=split, seconds=seconds))
    asked.say(f"{app.name}: without cuts")
    every = (K_MAX,) * len(theirs)
    uncut = run(spark, Wanted(app=app, split=every, seconds=seconds, cut=False))
    return summary(app, runs, ours, uncut)


def summary(
    app: Application, runs: dict[Split, ApplicationRun], ours: Split, uncut: ApplicationRun
) -> SixSplits:
    """The figures of some runs; the model is learned from all of them."""
    estimate = MicroBatchEstimate([_settled(one) for one in runs.values()])
    settled = _settled(runs[PAPERS_SPLIT[app.name]])
    models: tuple[Model, ...] = ("mmk", "gigk")
    by_drs = {model: assign(queues_of(settled, app.operators, model), K_MAX) for model in models}
    queues = queues_of(settled, app.operators, "mmk")
    return SixSplits(
        app=app.name,
        measured={split: Sojourns.of(_settled(one)) for split, one in runs.items()},
        modelled_s={split: estimate.of_split(split) for split in runs},
        recommended=ours,
        by_drs={name: tuple(int(k) for k in best.cores) for name, best in by_drs.items()},
        by_drs_s={split: float(queues.network_latency(split)) for split in runs},
        uncut=Sojourns.of(_settled(uncut)),
        wrong=tuple(wrong_answers([*runs.values(), uncut])),
    )


def chosen_splits(
    theirs: Split, ours: Split, expected_s: Callable[[Split], float], count: int
) -> list[Split]:
    """The two recommended splits, the nearest ones to ours, and some that should be slower.

    Neighbours differ by less than two runs of the same split do. So the rest are those whose
    expected sojourn is nearest to a given factor of the recommended one's.
    """
    near = neighbours(ours, _NEIGHBOURS)
    able = [split for split in near if math.isfinite(expected_s(split))]
    found = list(dict.fromkeys([ours, theirs, *able[:NEAREST]]))
    for factor in SLOWER:
        left = [split for split in able if split not in found]
        if left:
            wanted_s = factor * expected_s(ours)
            found.append(min(left, key=lambda one: abs(expected_s(one) - wanted_s)))
    return found[:count]


def recommended(estimate: MicroBatchEstimate, operators: int) -> Split:
    """The split of all cores with the lowest sojourn by the micro-batch model."""
    splits = [
        split
        for split in itertools.product(range(1, K_MAX), repeat=operators)
        if sum(split) == K_MAX
    ]
    return min(splits, key=estimate.of_split)


def told(found: Sequence[SixSplits]) -> Findings:
    """The outcome of both figures."""
    return Findings(
        compared=tuple(line for one in found for line in _compared(one)),
        aims=tuple(aim for one in found for aim in _aims(one)),
        pictures=tuple(picture for one in found for picture in _pictures(one)),
        notes=tuple(fault for one in found for fault in one.wrong),
    )


def _compared(one: SixSplits) -> list[Compared]:
    theirs = shown(PAPERS_SPLIT[one.app])
    lines = [
        Compared(f"{one.app}: recommended split", theirs, shown(one.recommended)),
        Compared(f"{one.app}: best split as measured", theirs, shown(one.best)),
    ]
    for model, split in one.by_drs.items():
        lines.append(
            Compared(
                f"{one.app}: DRS's {model} on our measurements recommends", theirs, shown(split)
            )
        )
    for split, sojourns in one.measured.items():
        mark = " *" if split == one.recommended else ""
        lines.append(
            Compared(
                f"{one.app} {shown(split)}{mark}: sojourn, deviation; micro-batch model; M/M/k",
                None,
                f"{1000 * sojourns.mean_s:.0f}, {1000 * sojourns.deviation_s:.0f};"
                f" {1000 * one.modelled_s[split]:.0f}; {1000 * one.by_drs_s[split]:.0f} ms",
            )
        )
    lines.append(
        Compared(
            f"{one.app} without cuts: sojourn, deviation",
            None,
            f"{1000 * one.uncut.mean_s:.0f}, {1000 * one.uncut.deviation_s:.0f} ms",
        )
    )
    return lines


def _aims(one: SixSplits) -> list[Aim]:
    return [
        at_most(f"{one.app}: recommended split over the best of its neighbourhood", one.off, NEAR),
        at_least(f"{one.app}: rank correlation of model and measurement", one.alike, 0.9),
        at_least(
            f"{one.app}: sojourn of the best split over that without cuts",
            one.measured[one.best].mean_s / one.uncut.mean_s,
            1.0,
        ),
        at_most(f"{one.app}: runs with wrong answers", len(one.wrong), 0),
    ]


def _pictures(one: SixSplits) -> list[Picture]:
    splits = sorted(one.measured)
    names = tuple(shown(split) for split in splits)
    measured = tuple(one.measured[split].mean_s for split in splits)
    modelled = tuple(one.modelled_s[split] for split in splits)
    return [
        Picture(
            f"{one.app}: total sojourn by split (figure 6)",
            f"split of {K_MAX} cores",
            "seconds",
            (
                Curve("measured", names, measured),
                Curve("deviation", names, tuple(one.measured[s].deviation_s for s in splits)),
                Curve("micro-batch model", names, modelled),
            ),
            marks=(shown(one.recommended),),
        ),
        Picture(
            f"{one.app}: measured against modelled sojourn (figure 7)",
            "modelled, seconds",
            "measured, seconds",
            (
                Curve("micro-batch model", *_sorted(modelled, measured)),
                Curve("M/M/k", *_sorted(tuple(one.by_drs_s[s] for s in splits), measured)),
            ),
        ),
    ]


def _sorted(
    modelled: tuple[float, ...], measured: tuple[float, ...]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    pairs = sorted(zip(modelled, measured, strict=True))
    return tuple(x for x, _ in pairs), tuple(y for _, y in pairs)


def _settled(ran: ApplicationRun) -> list[Record]:
    return after(ran.records, SETTLED_S, ran.seconds)
