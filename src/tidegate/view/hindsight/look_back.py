"""Looks back at records: judges every run of them, and adds up what it finds."""

from collections.abc import Callable, Sequence

from tidegate.control.record import Record
from tidegate.control.replay import runs_of
from tidegate.view.hindsight.core_layers import layers
from tidegate.view.hindsight.hindsight import Hindsight
from tidegate.view.hindsight.judge_run import JudgedRun, judge_run


def hindsight_of(records: Sequence[Record], watch: Callable[[], None] = lambda: None) -> Hindsight:
    """Look back at these records, oldest first, of one run or of several in a row.

    `watch` is called once for each record, to show how far it is.
    """
    first = records[0].measurement
    start_s = first.at_s - first.interval_s
    runs = [judge_run(run, start_s, watch) for run in runs_of(records)]
    ticks = [tick for run in runs for tick in run.ticks]
    known = [(tick, tick.need) for tick in ticks if tick.need is not None]
    above: dict[str, float] = {}
    for tick, _ in known:
        for cause, cores in layers(tick).items():
            above[cause] = above.get(cause, 0.0) + cores * tick.seconds
    return Hindsight(
        seconds=sum(tick.seconds for tick in ticks),
        known_seconds=sum(tick.seconds for tick, _ in known),
        core_seconds=sum(tick.granted * tick.seconds for tick in ticks),
        known_core_seconds=sum(tick.granted * tick.seconds for tick, _ in known),
        enough_core_seconds=sum(need.enough * tick.seconds for tick, need in known),
        most_enough=max((need.enough for _, need in known), default=0),
        above=_largest_first(above),
        below_core_seconds=sum(
            max(need.enough - tick.granted, 0) * tick.seconds for tick, need in known
        ),
        judged_seconds=sum(tick.seconds for tick in ticks if tick.met is not None),
        missed=_largest_first(_missed(runs)),
        verdicts=tuple(verdict for run in runs for verdict in run.verdicts),
        dry_run=bool(ticks) and all(tick.settings.dry_run for tick in ticks),
        target=any(tick.settings.target is not None for tick in ticks),
        enough_by_tick=tuple(None if tick.need is None else tick.need.enough for tick in ticks),
    )


def _missed(runs: Sequence[JudgedRun]) -> dict[str, float]:
    found: dict[str, float] = {}
    for run in runs:
        for place, cause in run.causes.items():
            found[cause] = found.get(cause, 0.0) + run.ticks[place].seconds
    return found


def _largest_first(numbers: dict[str, float]) -> dict[str, float]:
    return dict(sorted(numbers.items(), key=lambda pair: -pair[1]))
