"""What a batch keeps, class by class: floors hold, and a late batch keeps as many rows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.decision import Decision, hold
from tidegate.control.shedding.classes import ClassWorth
from tidegate.control.shedding.keep import KEEP_ALL, Keep

WORTHS = {
    "gold": ClassWorth(priority=1, weight=1.0, floor=0.2),
    "rest": ClassWorth(priority=0, weight=1.0, floor=0.0),
}


def test_a_decision_replaces_what_is_in_force() -> None:
    assert KEEP_ALL.decided(hold("as it is")) is KEEP_ALL
    by = Decision(reason="less", keep=0.5, keep_by_class={"gold": 0.9}, keep_span_s=2.0)
    assert KEEP_ALL.decided(by) == Keep(0.5, {"gold": 0.9}, 2.0)
    only_class = Decision(reason="less", keep_by_class={"rest": 0.1})
    assert Keep(0.5).decided(only_class) == Keep(0.5, {"rest": 0.1})


def test_floors_hold_whoever_asks() -> None:
    kept = Keep(0.1, {"gold": 0.05, "unknown": 0.7}).promised(WORTHS)
    assert kept.by_class == {"gold": 0.2}
    assert kept.of(("gold", "rest")) == (0.2, 0.1)
    assert kept.of(()) == (0.1,)


@given(
    fraction=st.floats(0.05, 0.95),
    span_s=st.floats(0.5, 3.0),
    gathered_s=st.floats(0.5, 3.0),
    gold=st.floats(0.05, 0.95),
)
def test_a_late_batch_keeps_as_many_rows_as_were_meant(
    fraction: float, span_s: float, gathered_s: float, gold: float
) -> None:
    offered = {"gold": 1000.0 * gold, "rest": 1000.0 * (1.0 - gold)}
    meant = Keep(fraction, {"gold": fraction, "rest": fraction}, span_s)
    found = meant.of_batch(gathered_s, offered, WORTHS)
    assert found.by_class["gold"] >= WORTHS["gold"].floor or fraction < WORTHS["gold"].floor
    share = min(fraction * span_s / gathered_s, 1.0)
    assert found.fraction == pytest.approx(share)
    if share != fraction and share * 1000.0 >= WORTHS["gold"].floor * offered["gold"]:
        kept = sum(offered[name] * found.by_class[name] for name in offered)
        assert kept == pytest.approx(share * 1000.0, rel=1e-6)
