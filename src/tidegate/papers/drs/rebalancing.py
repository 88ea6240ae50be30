"""Figure 8: from a wrong split of 22 cores to the right one, in one re-allocation.

The policy is DRS's own (`drs-fixed`), with T_ra of 14 minutes as in the paper, counted from the
start on: so there is one re-allocation at most. A minute is a few seconds here: micro-batches
settle in seconds, and a change of the split takes effect with the next one.
"""

import math

from pyspark.sql import SparkSession

from tidegate.apps.application import Application
from tidegate.apps.run_application import ApplicationRun
from tidegate.benching import Aim, at_least, at_most
from tidegate.control.allocation.allocate import assign
from tidegate.papers.application_runs import wrong_answers
from tidegate.papers.drs.runs import K_MAX, Wanted, papers_session, run, warm_up
from tidegate.papers.drs.six_splits import asked_apps
from tidegate.papers.drs.split_sojourns import PAPERS_SPLIT
from tidegate.papers.drs.timeline import COST_OF_A_CHANGE, Timeline
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.papers.measured import after, queues_of
from tidegate.papers.splits import shown
from tidegate.view.pages.paper import Curve, Picture

WRONG = {"vld": ((8, 12, 2), (11, 9, 2)), "fpd": ((8, 12, 2), (7, 13, 2))}
"""The paper's sub-optimal starts."""
MINUTES = 27
BETWEEN_MINUTES = 14
_FROM_MINUTE = 15
"""The paper's re-allocation was at minute 14."""


def figure_8(asked: Asked) -> Findings:
    """Three starts of each application, or of the one that `--option app=` names."""
    compared: list[Compared] = []
    aims: list[Aim] = []
    pictures: list[Picture] = []
    wrong: list[str] = []
    apps = asked_apps(asked)
    asked.progress.expect(sum(len(_splits(app, asked)) for app in apps))
    with papers_session("drs") as spark:
        for app in apps:
            found = _starts(spark, app, asked)
            compared += found.compared
            aims += found.aims
            pictures += found.pictures
            wrong += found.notes
    return Findings(
        compared=tuple(compared),
        aims=tuple(aims),
        pictures=tuple(pictures),
        notes=(COST_OF_A_CHANGE, *wrong),
    )


def _splits(app: Application, asked: Asked) -> tuple[tuple[int, ...], ...]:
    """The splits to begin with: the paper's, and wrong ones."""
    return (PAPERS_SPLIT[app.name], *WRONG[app.name][: 1 if asked.quick else None])


def _starts(spark: SparkSession, app: Application, asked: Asked) -> Findings:
    minute_s = 2.0 if asked.quick else 3.0
    starts = _splits(app, asked)
    warm_up(spark, app)
    runs: dict[tuple[int, ...], ApplicationRun] = {}
    for split in starts:
        asked.progress.step(f"{app.name}: from {shown(split)}, {MINUTES} minutes of {minute_s:g} s")
        runs[split] = run(
            spark,
            Wanted(
                app=app,
                split=split,
                seconds=MINUTES * minute_s,
                acts=True,
                between_s=BETWEEN_MINUTES * minute_s,
            ),
        )
    return told(app, runs, minute_s)


def told(
    app: Application, runs: dict[tuple[int, ...], ApplicationRun], minute_s: float
) -> Findings:
    """What the runs from each start show, each by the split that it began with."""
    # What is changed after the last row is no part of the figure.
    lines = {
        split: Timeline(after(one.records, 0.0, one.seconds), app.operators, minute_s)
        for split, one in runs.items()
    }
    settled = [after(one.records, _FROM_MINUTE * minute_s, one.seconds) for one in runs.values()]
    right = tuple(int(k) for k in assign(queues_of(settled, app.operators, "mmk"), K_MAX).cores)
    compared = [
        Compared(
            f"{app.name}: best split of the rates that were measured",
            shown(PAPERS_SPLIT[app.name]),
            shown(right),
        )
    ]
    aims = []
    for split, line in lines.items():
        ended = line.splits[-1][1]
        before, later = line.latency_ms(3, 14), line.latency_ms(_FROM_MINUTE, MINUTES)
        compared += [
            Compared(
                f"{app.name} from {shown(split)}: minute and split of each change",
                "14: " + shown(PAPERS_SPLIT[app.name])
                if split != PAPERS_SPLIT[app.name]
                else "none",
                line.shown(),
            ),
            Compared(
                f"{app.name} from {shown(split)}: ms before, after", None, f"{before}, {later}"
            ),
            Compared(
                f"{app.name} from {shown(split)}: ms more in the minute of a change",
                None if split == PAPERS_SPLIT[app.name] else "negligible",
                line.increases(),
            ),
        ]
        off = sum(abs(a - b) for a, b in zip(ended, right, strict=True)) // 2
        begun = f"{app.name} from {shown(split)}"
        aims.append(at_most(f"{begun}: cores in the wrong place at the end", off, 1))
        if split != PAPERS_SPLIT[app.name]:
            aims.append(at_least(f"{begun}: re-allocations", len(line.splits) - 1, 1))
            # The load is drawn anew every second, so only runs at the same minutes compare.
            usual = lines[PAPERS_SPLIT[app.name]].latency_ms(_FROM_MINUTE, MINUTES)
            ratio = later / usual if usual and later else math.inf
            aims.append(at_most(f"{begun}: sojourn after over that of the right start", ratio, 1.1))
    return Findings(
        compared=tuple(compared),
        aims=(
            *aims,
            at_most(f"{app.name}: wrong answers", len(wrong_answers([*runs.values()])), 0),
        ),
        pictures=(
            Picture(
                f"{app.name}: sojourn by the minute (figure 8)",
                f"minutes of {minute_s:g} s",
                "seconds",
                tuple(Curve(f"from {shown(s)}", *line.by_minute()) for s, line in lines.items()),
            ),
        ),
        notes=tuple(wrong_answers([*runs.values()])),
    )
