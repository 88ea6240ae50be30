"""Table I: AIC finds the order that made a series, and the World Cup week alone has an aim."""

from pathlib import Path

import numpy as np
import pytest

from tests.unit.papers.mst.week import trace, written
from tidegate.errors import AskedWrongly
from tidegate.papers.figure import Asked
from tidegate.papers.mst.loads import LOADS, LoadWeek
from tidegate.papers.mst.orders import PAPERS_ORDERS, chosen, table_1
from tidegate.sim.capacity.backtest import TraceForecasts


def made(phi: float, theta: tuple[float, ...], seed: int = 1) -> np.ndarray:
    """An ARMA(1, q) with mean zero."""
    shocks = np.random.default_rng(seed).standard_normal(600)
    values = np.zeros(600)
    for t in range(len(theta), 600):
        values[t] = phi * values[t - 1] + shocks[t]
        values[t] += sum(weight * shocks[t - 1 - j] for j, weight in enumerate(theta))
    return values[-150:]


def test_the_order_that_made_a_series_is_near_the_lowest_aic() -> None:
    week = LoadWeek(LOADS[0], TraceForecasts(made(0.7, (0.2, 0.8))), "made")
    found = chosen(week)
    assert found.papers == (1, 2)
    assert 0.0 <= found.behind <= 2.0


def test_a_wrong_order_is_far_above() -> None:
    white = np.random.default_rng(2).standard_normal(100)
    seasonal = np.convolve(white, [1.0, 0.0, 0.0, 0.9])[:100]  # MA(3), which ARMA(1, 1) is not
    week = LoadWeek(LOADS[1], TraceForecasts(seasonal), "made")
    assert chosen(week).behind > 5.0


def test_the_table_has_all_loads_and_an_aim_for_a_given_week(tmp_path: Path) -> None:
    given = {"worldcup": written(tmp_path, "week", trace())}
    found = table_1(Asked(extra=given, say=lambda _: None))
    papers = [one.paper for one in found.compared if one.paper is not None]
    assert papers == [f"ARMA({p}, {q})" for p, q in PAPERS_ORDERS.values()]
    assert len(found.aims) == 1
    assert table_1(Asked(say=lambda _: None)).aims == ()


def test_a_load_that_never_changes_is_refused(tmp_path: Path) -> None:
    given = {"adsb": written(tmp_path, "flat", np.full(300, 7.0))}
    with pytest.raises(AskedWrongly, match="ADS-B"):
        table_1(Asked(extra=given, say=lambda _: None))
