"""Figures 6 and 7: the sojourn under several splits of 22 cores, measured and by the models.

The station here is the micro-batch, so our recommendation comes from the micro-batch model. DRS's
own M/M/k and GI/G/k recommendations, from the same measurements, are shown beside it, and so is the
pipeline without cuts: one segment whose operators take turns, each with all the cores.
"""

import itertools
import math
from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession

from tidegate.apps.application import Application
from tidegate.apps.catalogue import application
from tidegate.apps.run_application import ApplicationRun
from tidegate.control.allocation.allocate import assign
from tidegate.control.record import Record
from tidegate.errors import AskedWrongly
from tidegate.models.queueing.stations import Model
from tidegate.papers.application_runs import wrong_answers
from tidegate.papers.drs.runs import (
    K_MAX,
    SLOW_S,
    Wanted,
    papers_session,
    run,
)
from tidegate.papers.drs.split_sojourns import PAPERS_SPLIT, Split, SplitSojourns, told
from tidegate.papers.estimate import MicroBatchEstimate
from tidegate.papers.figure import Asked, Findings
from tidegate.papers.measured import Sojourns, after, mean_rate, queues_of
from tidegate.papers.splits import neighbours, shown

SETTLED_S = SLOW_S + 15.0
"""Sojourns are judged from then on."""
SLOWER = (1.3, 1.7, 2.2)
"""Three further splits should take so many times as long as the recommended one."""
SplitRuns = dict[Split, list[ApplicationRun]]
"""The runs of each split, oldest first."""
_FURTHER = 120
_WARM_S = 120.0
_QUICK_RUNS, _RUNS = 5, 22
"""About so many runs of each application; how many depends on what the model recommends."""
_DUELS = 3
"""Further runs of the recommended split and of the one that seemed better."""
_ASKED_AGAIN = 4
"""Splits after which the model's recommendation is taken as it is."""


def figure_6(asked: Asked) -> Findings:
    """Run both applications, or the one that `--app` names."""
    apps = asked_apps(asked)
    asked.progress.expect(len(apps) * (_QUICK_RUNS if asked.quick else _RUNS))
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


def measure(spark: SparkSession, app: Application, asked: Asked) -> SplitSojourns:
    """Measure at the paper's split, ask the model, then run its choice and its neighbours.

    The model is asked again after each run of a split that it recommended, until it stays with one,
    and a last time when the neighbours have run, as a control loop goes on learning. Two runs of
    one split differ by up to a tenth, and so do neighbours. A split that seems better than the
    recommended one may only have been lucky, as the best of many. So the two run again, in turns,
    and these further runs alone tell how far the recommended one is behind.
    """
    seconds = 45.0 if asked.quick else 65.0
    theirs = PAPERS_SPLIT[app.name]
    runs: SplitRuns = {}

    def run_split(split: Split, why: str = "") -> None:
        asked.progress.step(f"{app.name}: {shown(split)}{why}")
        ran = run(spark, Wanted(app=app, split=split, seconds=seconds))
        runs.setdefault(split, []).append(ran)

    asked.progress.step(f"{app.name}: warming up")
    # Spark gets faster for two minutes under the load itself: the first split would look slow.
    run(spark, Wanted(app=app, split=theirs, seconds=seconds if asked.quick else _WARM_S))
    run_split(theirs, ", the paper's split")
    ours = recommended(_learned(runs), len(theirs))
    while ours not in runs and len(runs) < _ASKED_AGAIN:
        run_split(ours, ", which our model recommends")
        ours = recommended(_learned(runs), len(theirs))
    asked.say(f"{app.name}: our model recommends {shown(ours)}")
    first = ours
    for split in chosen_splits(theirs, ours, _learned(runs).of_split, quick=asked.quick):
        if split not in runs:
            run_split(split)
    ours = recommended(_learned(runs), len(theirs))
    if ours != first:
        asked.say(f"{app.name}: after these runs our model recommends {shown(ours)}")
        for split in (ours, *beside(ours, _learned(runs).of_split)):
            if split not in runs and not asked.quick:
                run_split(split, ", beside what our model recommends now")
    if ours not in runs:
        run_split(ours, ", which our model recommends now")
    rival = best_of(runs)
    again: SplitRuns = {}
    if rival != ours and not asked.quick:
        for nth in range(_DUELS):
            for split in (ours, rival) if nth % 2 else (rival, ours):
                asked.progress.step(f"{app.name}: {shown(split)}, the best two again")
                ran = run(spark, Wanted(app=app, split=split, seconds=seconds))
                again.setdefault(split, []).append(ran)
    asked.progress.step(f"{app.name}: without cuts")
    every = (K_MAX,) * len(theirs)
    uncut = run(spark, Wanted(app=app, split=every, seconds=seconds, cut=False))
    return summary(app, runs, ours, uncut, again, first)


def best_of(runs: SplitRuns) -> Split:
    """The split with the shortest mean sojourn in these runs."""
    return min(runs, key=lambda split: _sojourns(runs[split]).mean_s)


def summary(
    app: Application,
    runs: SplitRuns,
    ours: Split,
    uncut: ApplicationRun,
    again: SplitRuns,
    first: Split | None = None,
) -> SplitSojourns:
    """The figures of some runs. For each split the model is learned from all others.

    `again` has the further runs of the recommended split and the best one, if they are two. `first`
    was recommended before the neighbours had run.
    """
    settled = [_settled(one) for one in runs[PAPERS_SPLIT[app.name]]]
    models: tuple[Model, ...] = ("mmk", "gigk")
    by_drs = {model: assign(queues_of(settled, app.operators, model), K_MAX) for model in models}
    queues = queues_of(settled, app.operators, "mmk")
    every = [one for these in (runs, again) for several in these.values() for one in several]
    return SplitSojourns(
        app=app.name,
        measured={split: _sojourns(several) for split, several in runs.items()},
        again={split: _sojourns(several) for split, several in again.items()},
        modelled_s={split: _expected_s(split, runs) for split in runs},
        recommended=ours,
        first=first,
        by_drs={name: tuple(int(k) for k in best.cores) for name, best in by_drs.items()},
        by_drs_s={split: float(queues.network_latency(split)) for split in runs},
        uncut=Sojourns.of(_settled(uncut)),
        wrong=tuple(wrong_answers([*every, uncut])),
    )


def _learned(runs: SplitRuns) -> MicroBatchEstimate:
    return MicroBatchEstimate([_settled(one) for several in runs.values() for one in several])


def _expected_s(split: Split, runs: SplitRuns) -> float:
    """What the runs of other splits say of this one, at the rate that it had."""
    others = {other: several for other, several in runs.items() if other != split}
    rates = [mean_rate([one.measurement for one in _settled(ran)]) for ran in runs[split]]
    return _learned(others).of_split(split, sum(rates) / len(rates)) if others else math.inf


def chosen_splits(
    theirs: Split, ours: Split, expected_s: Callable[[Split], float], *, quick: bool = False
) -> list[Split]:
    """The two recommended splits, all that are one core away from ours, and some slower ones.

    Neighbours differ by less than two runs of one split do. So the rest are those whose expected
    sojourn is nearest to a given factor of the recommended one's.
    """
    near = [split for split in neighbours(ours, _FURTHER) if math.isfinite(expected_s(split))]
    found = list(dict.fromkeys([ours, theirs, *([] if quick else beside(ours, expected_s))]))
    for factor in SLOWER[-1:] if quick else SLOWER:
        left = [split for split in near if split not in found]
        if left:
            wanted_s = factor * expected_s(ours)
            found.append(min(left, key=lambda one: abs(expected_s(one) - wanted_s)))
    return found


def beside(split: Split, expected_s: Callable[[Split], float]) -> list[Split]:
    """The splits that are one core away from this one and should keep up."""
    near = (one for one in neighbours(split, _FURTHER) if math.isfinite(expected_s(one)))
    return [one for one in near if _cores_moved(one, split) == 1]


def _cores_moved(one: Split, other: Split) -> int:
    return sum(abs(a - b) for a, b in zip(one, other, strict=True)) // 2


def recommended(estimate: MicroBatchEstimate, operators: int) -> Split:
    """The split of all cores with the lowest sojourn by the micro-batch model."""
    splits = [
        split
        for split in itertools.product(range(1, K_MAX), repeat=operators)
        if sum(split) == K_MAX
    ]
    return min(splits, key=estimate.of_split)


def _sojourns(runs: Sequence[ApplicationRun]) -> Sojourns:
    return Sojourns.of([record for one in runs for record in _settled(one)])


def _settled(ran: ApplicationRun) -> list[Record]:
    return after(ran.records, SETTLED_S, ran.seconds)
