"""Table I: the ARMA orders that AIC chooses from the first 100 minutes of each workload (IV-C).

Eq. 9 has mean zero, and our forecaster estimates a mean. Both orders are shown. So is by how much
the AIC of the paper's order is above the lowest one: within 2, the data hardly tell two orders
apart.
"""

from dataclasses import dataclass

from tidegate.benching import at_most
from tidegate.errors import AskedWrongly
from tidegate.forecast.arma import Arma, ArmaFitter, Order
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.papers.mst.loads import LOADS, LoadWeek, asked_weeks, said

PAPERS_ORDERS: dict[str, Order] = {"World Cup 98": (1, 2), "Tweets": (1, 1), "ADS-B": (1, 3)}
FIRST = 100
"""The number of values that the order is chosen from."""
HARDLY_WORSE = 2.0
"""A difference of AIC below which a model has substantial support (Burnham and Anderson)."""


@dataclass(frozen=True, slots=True)
class ChosenOrder:
    """What AIC says of one workload."""

    workload: str
    ours: Order
    """With a mean, as the forecaster of policies 4 to 7 has it."""
    as_printed: Order
    """Without a mean, as in eq. 9."""
    papers: Order
    behind: float
    """By how much the AIC of the paper's order exceeds the lowest, without a mean."""
    behind_with_mean: float


def chosen(week: LoadWeek) -> ChosenOrder:
    """Fit all orders up to (3, 3) to the first values of a week, and compare their AIC."""
    values = week.forecasts.trace[:FIRST]
    try:
        with_mean = _by_aic(ArmaFitter().fit_all(values))
        without = _by_aic(ArmaFitter(with_mean=False).fit_all(values))
    except AskedWrongly as error:
        raise AskedWrongly(
            f"The first {FIRST} minutes of {week.load.name} ({week.source}) have no ARMA model:"
            f" {error}"
        ) from None
    papers = PAPERS_ORDERS[week.load.name]
    return ChosenOrder(
        workload=week.load.name,
        ours=with_mean[0].order,
        as_printed=without[0].order,
        papers=papers,
        behind=_behind(without, papers),
        behind_with_mean=_behind(with_mean, papers),
    )


def _by_aic(models: list[Arma]) -> list[Arma]:
    """All but (0, 0), the lowest AIC first."""
    return sorted((one for one in models if one.order != (0, 0)), key=lambda one: one.aic)


def _behind(models: list[Arma], order: Order) -> float:
    """By how much the AIC of an order exceeds the lowest one, which comes first."""
    return next(model.aic for model in models if model.order == order) - models[0].aic


def table_1(asked: Asked) -> Findings:
    """The orders of the three workloads."""
    weeks = asked_weeks(asked.extra)
    return told([chosen(week) for week in weeks], given=tuple(asked.extra), note=said(weeks))


def told(found: list[ChosenOrder], *, given: tuple[str, ...], note: str) -> Findings:
    """The table. Only World Cup has an aim, if its file is given: the others are other weeks."""
    rows = []
    for one in found:
        rows += [
            Compared(f"{one.workload}: without a mean", _arma(one.papers), _arma(one.as_printed)),
            Compared(f"{one.workload}: with a mean", None, _arma(one.ours)),
            Compared(
                f"{one.workload}: AIC of the paper's order above the lowest, without and with",
                None,
                f"{one.behind:.2f}, {one.behind_with_mean:.2f}",
            ),
        ]
    aims = [
        at_most("AIC of the paper's order above the lowest, World Cup", one.behind, HARDLY_WORSE)
        for one in found
        if one.workload == LOADS[0].name and LOADS[0].option in given
    ]
    return Findings(
        compared=tuple(rows),
        aims=tuple(aims),
        notes=(
            note,
            "The paper's tweets are of April 2016 and its flights of August 2017. A week of another"
            " year, or a generated one, has the shape and not the values, so its order may differ.",
        ),
    )


def _arma(order: Order) -> str:
    return f"ARMA({order[0]}, {order[1]})"
