"""Values of a document that do not fit are left out, and what was there stays."""

import math
from collections import deque
from typing import Any, ClassVar

import numpy as np
import pytest

from tidegate.forecast.arma import ArmaForecaster
from tidegate.forecast.remembering import HALF_FORGOTTEN_S, Remembered, held


class Sample(Remembered):
    _LEARNED = ("_share", "_count", "_begun_s", "_last", "_pairs", "_rates", "_column", "_name")
    _LIKE: ClassVar = {"_last": 0.0, "_pairs": (0.0, 0)}

    def __init__(self) -> None:
        self._share = 1.0
        self._count = 3
        self._begun_s = -math.inf
        self._last: float | None = None
        self._pairs: deque[tuple[float, int]] = deque(maxlen=4)
        self._rates: list[float] = []
        self._column = np.zeros(2)
        self._name = "first"


FITTING = {
    "share": 0.25,
    "count": 7,
    "begun_s": 5.0,
    "last": 2.0,
    "pairs": [[1.0, 2], [3.0, 4]],
    "rates": [1.0, 2.0],
    "column": [1.0, 2.0],
    "name": "second",
}


def state(one: Sample) -> dict[str, Any]:
    found = one.learned()
    assert found["column"] == one._column.tolist()
    return found


def test_what_fits_is_taken() -> None:
    one = Sample()
    one.recall(FITTING, 0.0)
    assert state(one) == FITTING
    assert list(one._pairs) == [(1.0, 2), (3.0, 4)] and one._pairs.maxlen == 4
    one.recall({"begun_s": "-inf", "last": None, "share": 2}, 0.0)
    assert one._last is None and one._share == 2.0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("share", None),
        ("share", "1.0"),
        ("share", True),
        ("share", math.nan),
        ("share", math.inf),
        ("share", "inf"),
        ("share", 10**400),
        ("share", [1.0]),
        ("count", 2.5),
        ("count", None),
        ("begun_s", "nan"),
        ("begun_s", math.nan),
        ("begun_s", {}),
        ("last", "x"),
        ("last", [1.0]),
        ("pairs", [[1.0]]),
        ("pairs", [[1.0, 2.5]]),
        ("pairs", [1.0]),
        ("pairs", None),
        ("rates", [1.0, None]),
        ("rates", {"0": 1.0}),
        ("column", [1.0]),
        ("column", [1.0, None]),
        ("column", ["a", "b"]),
        ("column", [1.0, "inf"]),
        ("name", 3),
    ],
)
def test_what_does_not_fit_leaves_what_there_is(key: str, value: object) -> None:
    one = Sample()
    before = state(one)[key]
    one.recall({**FITTING, key: value}, 0.0)
    found = state(one)
    assert found.pop(key) == before
    assert found == {name: kept for name, kept in FITTING.items() if name != key}


def test_an_order_of_arma_that_is_not_fitted_is_left_out() -> None:
    for order in ([9, 9], [-1, 0], [1], "x"):
        one = ArmaForecaster(max_order=(2, 1))
        one.recall({"values": [float(n % 7) for n in range(60)], "order": order}, 0.0)
        assert one.forecast(3).mean.shape == (3,)


def test_half_is_forgotten_after_a_week() -> None:
    assert held(0.0) == 1.0 and held(-5.0) == 1.0
    assert held(HALF_FORGOTTEN_S) == pytest.approx(0.5)
