"""Figure 5: without a controller latency stays low up to 80 queries, and grows from 100 on.

The paper runs for 450 seconds, until the engine has no memory left. Here a minute shows the growth;
what waits is not in memory, because the source makes rows when they are asked for.
"""

from collections.abc import Sequence

from tidegate.apps.planetlab.load import STEP_S
from tidegate.apps.planetlab.outcome import Planetlab
from tidegate.apps.planetlab.run import WARM_S
from tidegate.benching import Aim, at_least, at_most
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.papers.overload.runs import (
    QUICK_S,
    WHOLE_S,
    QueryRun,
    all_of,
    miscounted,
    wrong_runs,
)
from tidegate.view.pages.paper import Curve, Picture

SHORT_S = WARM_S + 2 * STEP_S
TARGET_S = 1.0
"""What the first start needs a target for; nothing is done to hold it."""
COPES, BEGINS, OVERLOADED, MANY = 80, 100, 200, 1000
_PAPER = {
    COPES: "low throughout",
    BEGINS: "grows until memory is out, within 450 s",
    OVERLOADED: "grows until memory is out, within 450 s",
}

Found = Sequence[tuple[QueryRun, Planetlab]]


def cases(quick: bool) -> list[QueryRun]:
    """Stretched and, for 200 and 1,000 queries, with real work only."""
    if quick:
        return [
            _case(20, QUICK_S),
            _case(OVERLOADED, QUICK_S, more_s=30.0),
        ]
    return [
        _case(OVERLOADED, SHORT_S, stretched=False),
        _case(MANY, SHORT_S, stretched=False),
        _case(COPES, WHOLE_S),
        _case(BEGINS, WHOLE_S, more_s=10.0),
        _case(OVERLOADED, WHOLE_S, more_s=60.0),
    ]


def _case(queries: int, seconds: float, *, stretched: bool = True, more_s: float = 0.0) -> QueryRun:
    return QueryRun(
        queries=queries,
        target_s=TARGET_S,
        shed=False,
        stretched=stretched,
        seconds=seconds,
        more_s=more_s,
    )


def figure_5(asked: Asked) -> Findings:
    """Run the queries with nothing shed."""
    return told(*all_of(asked, cases(asked.quick)))


def growth(one: Planetlab) -> float | None:
    """The highest latency of the last third of the judged time over that of the first third."""
    judged = [record.measurement.latency for record in one.judged]
    told_s = [latency.mean_s for latency in judged if latency is not None]
    third = len(told_s) // 3
    if third == 0:
        return None
    return max(told_s[-third:]) / max(told_s[:third])


def told(found: Found, note: str) -> Findings:
    """Latencies over time, and whether they grow."""
    compared = []
    for case, one in found:
        theirs = _PAPER.get(case.queries) if case.stretched else None
        latency_s = [value for _, value in one.latency_s]
        worst = f"{max(latency_s):.1f} s" if latency_s else "none"
        last = f"{latency_s[-1]:.1f} s" if latency_s else "none"
        ours = f"mean {one.mean_latency_s:.1f} s, highest {worst}, at the end {last}"
        compared.append(Compared(f"{case.words}: latency", theirs, ours))
        compared.append(Compared(f"{case.words}: CPU, %", None, _cpu(one)))
    return Findings(
        compared=tuple(compared),
        aims=tuple(_aims(found)),
        pictures=(_picture(found),),
        notes=(
            note,
            "The paper's numbers of queries are where its engine copes (80) and where it no longer"
            " does (100 and more); its curves are drawn, not printed.",
            "What waits here is not in memory: the source makes its rows when they are asked for."
            " So the engine does not fail; it answers later and later.",
            *wrong_runs(found),
        ),
    )


def _cpu(one: Planetlab) -> float | None:
    return None if one.cpu_percent is None else round(one.cpu_percent)


def _aims(found: Found) -> list[Aim]:
    aims = [
        at_least(f"{case.words}: latency at the end over that at the beginning", growth(one), 1.5)
        for case, one in found
        if case.queries == OVERLOADED and case.stretched
    ]
    aims += [
        at_most(f"{case.words}: latency in the end", one.latency_s[-1][1], 2.0, "s")
        for case, one in found
        if (case.queries <= COPES or not case.stretched) and one.latency_s
    ]
    return [
        *aims,
        at_most("runs with wrong answers", len(wrong_runs(found)), 0),
        at_most("queries that do not have every row once", miscounted(found), 0),
    ]


def _picture(found: Found) -> Picture:
    curves = tuple(
        Curve(
            case.words,
            tuple(at_s for at_s, _ in one.latency_s),
            tuple(value for _, value in one.latency_s),
        )
        for case, one in found
    )
    return Picture(
        "Mean latency without shedding (figure 5)", "seconds", "seconds", curves, logarithmic=True
    )
