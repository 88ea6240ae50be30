"""MST's policies with their options are one text: read, refused and written down again."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.capacity.mst import TABLE_III
from tidegate.control.capacity_options import (
    LEARN_NOTHING,
    MST,
    POLICIES,
    CapacityOptions,
    capacity_options,
)
from tidegate.control.names import PIPELINE_POLICIES, policy_name
from tidegate.control.target import Target
from tidegate.errors import AskedWrongly
from tidegate.models.capacity.measured import CapacitySample, MeasuredCapacity

MEASURED = MeasuredCapacity(
    pipeline="ads",
    samples=tuple(CapacitySample(cores=m, rows_per_s=100.0 * m) for m in (1, 2, 4, 8)),
)


def assembly(policy: str, capacity: MeasuredCapacity | None = None) -> Assembly:
    return Assembly(target=Target(2.0), bounds=Bounds(1, 8), policy=policy, capacity=capacity)


def test_options_are_read_and_written_in_one_way() -> None:
    found = capacity_options("mst-7(cycle=10s, qos=0.95)")
    assert found == CapacityOptions(cycle_s=10.0, qos=0.95)
    once = policy_name(" mst-7( startup=500ms ,cycle = 2 seconds, qos=0.9)")
    assert capacity_options(once) == CapacityOptions(cycle_s=2.0, qos=0.9, startup_s=0.5)
    assert policy_name(once) == once
    assert policy_name("mst-7()") == policy_name("mst-7(cycle=10s)") == "mst-7"
    assert capacity_options("latency") == CapacityOptions()


def test_other_names_lead_to_the_same_policies() -> None:
    assert policy_name("mst-arma") == "mst-4"
    assert policy_name("mst-priced(cycle=1min)") == "priced-capacity(cycle=60 s)"
    assert set(POLICIES) <= set(PIPELINE_POLICIES)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("mst-7(cycel=2s)", "mst-7 has no option 'cycel'; did you mean 'cycle'"),
        ("mst-7(qos=1)", "qos is a probability from 0.5 to below 1, not '1'"),
        ("mst-7(qos=often)", "qos is a probability from 0.5 to below 1, not 'often'"),
        ("mst-7(cycle=10)", "'10' is not a duration"),
        ("mst-7(cycle=2s, startup=2s)", "startup=2 s, but the cycle is 2 s; give a longer cycle"),
        ("mst-3(startup=1s)", "mst-3 has no option 'startup'"),
        ("mst-0(startup=1s)", "mst-0 has no option 'startup'"),
        ("mst-0(qos=0.9)", "mst-0 has no option 'qos'"),
        ("mst-2(qos=0.9)", "mst-2 has no option 'qos'"),
        ("mst-8", "there is no policy 'mst-8'; did you mean 'mst-"),
    ],
)
def test_a_wrong_option_is_told_in_a_sentence(written: str, message: str) -> None:
    with pytest.raises(AskedWrongly, match=message):
        policy_name(written)


def test_an_option_is_taken_exactly_where_it_changes_something() -> None:
    for name, techniques in zip(MST, TABLE_III.values(), strict=True):
        taken = {"cycle"}
        taken |= {"startup"} if techniques.forecast else set()
        taken |= {"qos"} if techniques.forecast or techniques.uncertainty else set()
        for option, value in (("cycle", "20s"), ("startup", "3s"), ("qos", "0.9")):
            if option in taken:
                assert capacity_options(f"{name}({option}={value})") != CapacityOptions()
            else:
                with pytest.raises(AskedWrongly, match=f"{name} has no option '{option}'"):
                    capacity_options(f"{name}({option}={value})")


@given(cycle_s=st.floats(0.01, 1e5), tick_s=st.floats(0.01, 100.0), share=st.floats(0.001, 0.999))
def test_a_plan_is_made_within_the_cycle_before(
    cycle_s: float, tick_s: float, share: float
) -> None:
    options = CapacityOptions(cycle_s=cycle_s, startup_s=share * cycle_s)
    steps, startup = options.steps(tick_s), options.startup_steps(tick_s)
    assert 1 <= steps <= 10
    assert 0 <= startup < steps
    assert options.step_s(tick_s) >= tick_s
    if cycle_s >= 10.0 * tick_s:
        assert steps == 10
        assert startup * options.step_s(tick_s) >= min(share * cycle_s, 0.9 * cycle_s) * (1 - 1e-6)


def test_the_papers_cycle_is_ten_steps_with_two_to_start() -> None:
    options = CapacityOptions(cycle_s=600.0)
    assert (options.step_s(1.0), options.steps(1.0), options.startup_steps(1.0)) == (60.0, 10, 2)
    short = CapacityOptions(cycle_s=2.0)
    assert (short.step_s(1.0), short.steps(1.0), short.startup_steps(1.0)) == (1.0, 2, 1)


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_that_learns_nothing_needs_a_measured_capacity(name: str) -> None:
    assert new_controller(assembly(name, MEASURED)).policy.name == name
    if name not in LEARN_NOTHING:
        assert new_controller(assembly(name)).policy.name == name
        return
    same = MST[MST.index(name) + 2]
    with pytest.raises(AskedWrongly, match=f"{name} does not learn .* give a capacity .* {same}"):
        assembly(name)


def test_a_record_holds_the_capacity_and_an_older_one_without_it_is_read() -> None:
    made = assembly(policy_name("mst-1(cycle=2s)"), MEASURED)
    document = json.loads(json.dumps(made.document()))
    assert Assembly.of(document) == made
    older = {**assembly("mst-7").document()}
    del older["capacity"]
    assert Assembly.of(older) == assembly("mst-7")


def test_a_capacity_that_says_nothing_is_refused() -> None:
    overhead = MeasuredCapacity(
        pipeline="ads",
        samples=(CapacitySample(cores=1, rows_per_s=10.0, batch_s=0.3),),
        fixed_s=0.29,
    )
    with pytest.raises(AskedWrongly, match="hardly anything but overhead; measure larger ones"):
        assembly("mst-7", overhead)
