"""Figures 6 and 7: latency held at its target by shedding, with CPU use, rows kept and spread.

Figure 7's distributions are those of figure 6's runs with 200 queries.
"""

from collections.abc import Callable, Sequence

import numpy as np

from tidegate.apps.planetlab.outcome import Planetlab
from tidegate.benching import Aim, at_least, at_most
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.papers.overload.distribution import distribution_pictures, distribution_rows
from tidegate.papers.overload.runs import (
    QUICK_S,
    QueryRun,
    all_of,
    miscounted,
    wrong_runs,
)
from tidegate.view.pages.paper import Curve, Picture

TARGETS_S = (0.5, 1.0, 2.0, 3.0)
OVERLOADED, MANY = 200, 1000
"""The most queries of the paper, and more than it tells anything of."""
REAL = 3000
"""So many queries overload two cores by their real work alone."""
BEGINS = 120
"""From so many queries on the paper's engine is overloaded and its latency at the target."""
AIMED_FROM_S = 1.0
WITHIN = 0.10
_ONE_S = 1.0

Found = Sequence[tuple[QueryRun, Planetlab]]


def cases(quick: bool) -> list[QueryRun]:
    """Queries and targets. Where nothing is shed the target says nothing, so one is enough."""
    if quick:
        return [
            QueryRun(queries=OVERLOADED, target_s=target_s, shed=True, seconds=QUICK_S)
            for target_s in (1.0, 2.0)
        ]
    stretched = [
        *((queries, target_s) for queries in (BEGINS, OVERLOADED) for target_s in TARGETS_S),
        *((queries, _ONE_S) for queries in (20, 80, 160, MANY)),
    ]
    return [
        *(
            QueryRun(queries=queries, target_s=target_s, shed=True)
            for queries, target_s in sorted(stretched)
        ),
        QueryRun(queries=REAL, target_s=2.0, shed=True, stretched=False),
    ]


def figure_6(asked: Asked) -> Findings:
    """Run all cases."""
    return told(*all_of(asked, cases(asked.quick)))


def off_target(case: QueryRun, one: Planetlab) -> float:
    """How far the mean latency is from its target, as a share of the target."""
    return abs(one.mean_latency_s / case.target_s - 1.0)


def told(found: Found, note: str) -> Findings:
    """Figure 6's three parts, and figure 7."""
    overloaded = [(case, one) for case, one in found if case.queries == OVERLOADED]
    return Findings(
        compared=(*_rows(found), *distribution_rows(overloaded)),
        aims=tuple(_aims(found)),
        pictures=(*_pictures(found), *distribution_pictures(overloaded)),
        notes=(
            note,
            "Mean latency is that of all rows, from arrival to the end of their batch. The paper's"
            " is that of results, by the oldest row in them: figure 7 has both.",
            "CPU is that of the application with Spark, in per cent of one core; a row that waits"
            " uses none. Tasks at work count the waiting: 2 of 2 is the paper's 200 %.",
            "Rows are shed before they are copied for the queries. So each query loses the same"
            " rows, and each counts its own: offered = kept + lost, to the row.",
            *wrong_runs(found),
        ),
    )


def _rows(found: Found) -> list[Compared]:
    rows = []
    for case, one in found:
        below, known = case.queries < BEGINS, case.queries <= OVERLOADED
        held_at = "low" if below else case.target_s
        cpu = "CPU not told" if one.cpu_percent is None else f"{one.cpu_percent:.0f}"
        counts = one.counts
        rows += [
            Compared(
                f"{case.words}: mean latency, s",
                held_at if known else None,
                round(one.mean_latency_s, 3),
            ),
            Compared(
                f"{case.words}: CPU, %; tasks at work",
                "near 200" if known and not below else None,
                f"{cpu}; {one.tasks_busy:.2f} of 2",
            ),
            Compared(
                f"{case.words}: rows of each query",
                None,
                f"{one.kept_share:.1%} kept, {one.kept_rate:.0f}/s; in all {counts.offered:,} ="
                f" {counts.kept:,} kept + {counts.shed:,} lost",
            ),
        ]
    return [*rows, *_errors(found)]


def _errors(found: Found) -> list[Compared]:
    """How far the averages of the kept rows are from those of all rows, where rows were shed."""
    figures = [one.verdict.figures for _, one in found if one.counts.shed]
    off = [one["mean_error_points"] for one in figures if "mean_error_points" in one]
    within = [one["within_stated_error"] for one in figures if "within_stated_error" in one]
    if not off:
        return []
    return [
        Compared(
            "averages of kept rows less those of all rows",
            None,
            f"{max(off):.2f} points of CPU use in the worst run; {np.mean(within):.0%} of all are"
            " within 1.96 of their stated standard errors",
        )
    ]


def _aims(found: Found) -> list[Aim]:
    aims = [
        at_most(f"{case.words}: mean latency off its target", off_target(case, one), WITHIN)
        for case, one in found
        if case.queries == OVERLOADED and case.target_s >= AIMED_FROM_S
    ]
    kept = {case.target_s: one.kept_share for case, one in found if case.queries == OVERLOADED}
    if len(kept) > 1:
        ratio = kept[max(kept)] / max(kept[min(kept)], 1e-9)
        name = f"{OVERLOADED} queries: kept at {max(kept):g} s over kept at {min(kept):g} s"
        aims.append(at_least(name, ratio, 1.0))
    return [
        *aims,
        at_most("runs with wrong answers", len(wrong_runs(found)), 0),
        at_most("queries that do not have every row once", miscounted(found), 0),
    ]


def _pictures(found: Found) -> tuple[Picture, ...]:
    return (
        _against_queries(found, "Mean latency (figure 6 a)", "seconds", lambda o: o.mean_latency_s),
        _against_queries(found, "CPU use (figure 6 b)", "% of one core", lambda o: o.cpu_percent),
        _against_queries(found, "Rows kept (figure 6 c)", "rows/s", lambda o: o.kept_rate),
    )


def _against_queries(
    found: Found, title: str, label: str, value: Callable[[Planetlab], float | None]
) -> Picture:
    """A value against the number of queries, with a line for each target."""
    lines = []
    for target_s in dict.fromkeys(case.target_s for case, _ in found):
        points = [
            (float(case.queries), value(one))
            for case, one in found
            if case.target_s == target_s and case.stretched
        ]
        drawn = [(queries, y) for queries, y in points if y is not None]
        lines.append(
            Curve(f"target {target_s:g} s", tuple(x for x, _ in drawn), tuple(y for _, y in drawn))
        )
    return Picture(title, "queries", label, tuple(lines))
