"""The rate and the backlog of a later segment, by what was handed over to it."""

from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.pipelines.graph import Channel
from tidegate.spark.measure.handed_over import HandedOver


def channel(name: str) -> Channel:
    return Channel(name=name, inputs=(), schema=None)  # type: ignore[arg-type]


def chain(old: dict[str, dict[int, int]] | None = None) -> HandedOver:
    """`main` writes `cut`, which `later` reads and sends back through `loop`."""
    cut, loop = channel("cut"), channel("loop")
    segments: dict[str, Any] = {
        "main": SimpleNamespace(reads=[loop], writes=[SimpleNamespace(channel=cut)]),
        "later": SimpleNamespace(reads=[cut], writes=[SimpleNamespace(channel=loop)]),
    }
    return HandedOver(segments, old)


def batch(
    number: int, began_s: float, end_s: float, written: dict[str, int], taken: tuple[int, int]
) -> Any:
    return SimpleNamespace(
        began_s=began_s,
        progress=SimpleNamespace(end_us=round(end_s * 1e6), channel_offsets=(taken,)),
        result=SimpleNamespace(written=written, plan=SimpleNamespace(batch_id=number)),
    )


def test_rows_arrive_when_they_are_handed_over_and_wait_until_they_are_taken() -> None:
    handed = chain()
    told = []
    for number in range(10):
        one = batch(number, float(number), number + 1.0, {"cut": 100}, (0, 0))
        handed.add({"main": [one], "later": []})
        told.append(handed.rates(1.0, (), number + 1.0)["later"])
    assert told[1:] == pytest.approx([100.0] * 9)
    assert handed.waiting("later") == 1000
    # Its first long batch has taken three of them; what it sends back comes to `main`.
    handed.add({"main": [], "later": [batch(0, 0.5, 10.0, {"loop": 30}, (0, 3))]})
    assert handed.waiting("later") == 700
    assert handed.waiting("main") == 30
    assert handed.rates(1.0, (), 11.0)["main"] > 0.0


def test_nothing_comes_from_a_writer_that_is_idle() -> None:
    handed = chain()
    for number in range(3):
        one = batch(number, float(number), number + 1.0, {"cut": 100}, (0, 0))
        handed.add({"main": [one], "later": []})
        handed.rates(1.0, (), number + 1.0)
    told = [handed.rates(1.0, ("main",), 4.0 + n)["later"] for n in range(60)]
    assert told[-1] == 0.0
    assert sum(told) <= 300.0
    handed.add({"main": [batch(3, 63.0, 64.0, {"cut": 100}, (0, 0))], "later": []})
    again = handed.rates(1.0, (), 64.0)["later"]
    assert again == pytest.approx(100.0, rel=0.3), "the quiet minute is no part of the new rate"


def test_a_hand_over_from_before_the_run_is_a_backlog_and_no_arrival() -> None:
    handed = chain({"cut": {3: 500, 4: 700}, "loop": {}})
    assert handed.waiting("later") == 1200, "it is known before any batch has run"
    first = batch(7, 0.0, 1.0, {}, (3, 5))
    assert handed.old_rows("later", first.progress) == 1200
    assert handed.old_rows("later", batch(8, 1.0, 2.0, {}, (4, 6)).progress) == 700
    handed.add({"main": [], "later": [first]})
    assert handed.rates(1.0, (), 1.0)["later"] == 0.0
    assert handed.waiting("later") == 0
