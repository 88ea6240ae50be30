"""Classes, shares and water: what is asked for is kept, the least important goes first."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.control.shedding.classes import (
    keep_by_class,
    refuse_below_floor,
    refuse_overpromised,
)
from tidegate.control.shedding.water_fill import water_fill
from tidegate.errors import AskedWrongly
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.pipelines.shedding import ShedClass

CLASSES = st.dictionaries(
    st.sampled_from("abcdef"),
    st.tuples(
        st.floats(0.0, 1e6),
        st.builds(
            ShedClass,
            priority=st.integers(0, 3),
            weight=st.floats(0.1, 10.0),
            floor=st.floats(0.0, 1.0),
        ),
    ),
    min_size=1,
)


@settings(max_examples=80, deadline=None)
@given(CLASSES, st.floats(0.0, 1.0))
def test_the_total_is_what_was_asked_whenever_the_floors_allow(
    drawn: Mapping[str, tuple[float, ShedClass]], keep: float
) -> None:
    offered = {name: rows for name, (rows, _) in drawn.items()}
    classes = {name: worth for name, (_, worth) in drawn.items()}
    found = keep_by_class(keep, offered, classes)
    asked = keep * sum(offered.values())
    promised = sum(offered[name] * worth.floor for name, worth in classes.items())
    kept = sum(offered[name] * share for name, share in found.items())
    assert kept == pytest.approx(max(asked, promised), rel=1e-9, abs=1e-6)
    assert all(classes[name].floor - 1e-12 <= share <= 1.0 for name, share in found.items())


@settings(max_examples=80, deadline=None)
@given(CLASSES, st.floats(0.0, 1.0))
def test_the_least_important_goes_first(
    drawn: Mapping[str, tuple[float, ShedClass]], keep: float
) -> None:
    offered = {name: rows for name, (rows, _) in drawn.items()}
    classes = {name: worth for name, (_, worth) in drawn.items()}
    found = keep_by_class(keep, offered, classes)
    for high, above in classes.items():
        for low, below in classes.items():
            if above.priority > below.priority and found[high] < 1.0 and offered[high] > 0:
                assert found[low] == pytest.approx(below.floor)
            if above.priority == below.priority and above.weight >= below.weight:
                lifted = found[low] > below.floor + 1e-12
                assert not lifted or found[high] >= found[low] - 1e-9


def test_weights_divide_one_priority() -> None:
    classes = {"a": ShedClass(weight=2.0), "b": ShedClass(weight=1.0)}
    found = keep_by_class(0.3, {"a": 100.0, "b": 100.0}, classes)
    assert found == pytest.approx({"a": 0.4, "b": 0.2})


def test_gold_is_kept_bronze_is_not() -> None:
    classes = {
        "gold": ShedClass(priority=2),
        "silver": ShedClass(priority=1, floor=0.1),
        "bronze": ShedClass(priority=0),
    }
    found = keep_by_class(0.5, {"gold": 200.0, "silver": 400.0, "bronze": 400.0}, classes)
    assert found == pytest.approx({"gold": 1.0, "silver": 0.75, "bronze": 0.0})


def test_a_class_that_does_not_exist_is_refused() -> None:
    with pytest.raises(AskedWrongly, match="no class of rows 'glod'; did you mean 'gold'"):
        keep_by_class(0.5, {"glod": 1.0}, {"gold": ShedClass()})


@pytest.mark.parametrize("worth", [ShedClass(floor=1.5), ShedClass(weight=0.0)])
def test_a_worth_that_means_nothing_is_refused(worth: ShedClass) -> None:
    with pytest.raises(AskedWrongly, match="a floor from 0 to 1 and a weight above 0"):
        keep_by_class(0.5, {"a": 1.0}, {"a": worth})


def test_a_share_that_means_nothing_is_refused() -> None:
    with pytest.raises(AskedWrongly, match="give 0 to 1"):
        keep_by_class(1.5, {"a": 1.0}, {"a": ShedClass()})


def test_floors_that_add_up_to_more_than_there_is_are_refused() -> None:
    classes = {"a": ShedClass(floor=0.9), "b": ShedClass(floor=0.5)}
    refuse_overpromised(classes, {"a": 1000.0, "b": 1000.0}, 1400.0)
    with pytest.raises(AskedWrongly, match=r"add up to 1,400 rows/s, but 700 .* to 50%"):
        refuse_overpromised(classes, {"a": 1000.0, "b": 1000.0}, 700.0)


def test_a_target_below_the_floor_is_refused() -> None:
    cost = BatchCost(fixed_s=0.3, work_s=1e-3)
    refuse_below_floor(0.46, 1.5 * cost.overhead_s(4))
    with pytest.raises(AskedWrongly, match="below the floor of 450 ms"):
        refuse_below_floor(0.4, 1.5 * cost.overhead_s(4))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0.1, 100), st.floats(0.1, 10), st.floats(0, 1)), min_size=1, max_size=8
    ),
    st.floats(0.0, 500.0),
)
def test_water_is_neither_lost_nor_made(
    drawn: list[tuple[float, float, float]], budget: float
) -> None:
    wants, weights, floors = zip(*drawn, strict=True)
    given_ = float(water_fill(wants, weights, floors, budget) @ list(wants))
    least = sum(want * floor for want, floor in zip(wants, floors, strict=True))
    assert given_ == pytest.approx(min(max(budget, least), sum(wants)), rel=1e-9)
