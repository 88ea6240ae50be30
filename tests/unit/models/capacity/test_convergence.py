"""MST's K out of N method: by its definition, whatever the unit, and what it refuses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import AskedWrongly
from tidegate.models.capacity.convergence import Convergence

rules = st.integers(1, 8).flatmap(
    lambda latest: st.builds(
        Convergence,
        close=st.integers(1, latest),
        latest=st.just(latest),
        delta=st.floats(0.01, 0.5),
    )
)
rates = st.lists(st.floats(1.0, 1e6), max_size=20)


@given(rule=rules, samples=rates)
def test_k_of_the_latest_n_are_near_the_one_before(rule: Convergence, samples: list[float]) -> None:
    near = 0
    for place in range(len(samples) - rule.latest, len(samples)):
        if place < 1:
            assert not rule.reached(samples)
            return
        near += abs(samples[place] - samples[place - 1]) <= rule.delta * samples[place - 1]
    assert rule.reached(samples) == (near >= rule.close)


@given(rule=rules, samples=rates, earlier=rates)
def test_only_the_latest_samples_count(
    rule: Convergence, samples: list[float], earlier: list[float]
) -> None:
    judged = samples[-(rule.latest + 1) :]
    if len(judged) > rule.latest:
        assert rule.reached([*earlier, *judged]) == rule.reached(judged)


@given(rule=rules, rate=st.floats(1.0, 1e6))
def test_a_steady_throughput_has_converged_as_soon_as_it_can_be_seen(
    rule: Convergence, rate: float
) -> None:
    assert not rule.reached([rate] * rule.latest)
    assert rule.reached([rate] * (rule.latest + 1))


@given(rule=rules, rate=st.floats(1.0, 1e6), samples=st.integers(2, 20))
def test_a_throughput_that_keeps_rising_has_not(
    rule: Convergence, rate: float, samples: int
) -> None:
    assert not rule.reached([rate * (1.01 + rule.delta) ** place for place in range(samples)])


def test_the_papers_rule_is_the_default() -> None:
    rule = Convergence()
    assert (rule.close, rule.latest, rule.delta) == (4, 5, 0.05)
    assert rule.reached([50.0, 100.0, 104.0, 100.0, 103.0, 105.0])
    assert not rule.reached([50.0, 100.0, 106.0, 100.0, 103.0, 105.0])


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ({"close": 6}, "6 of the latest 5"),
        ({"close": 0}, "give K of N"),
        ({"delta": 0.0}, "a share above 0"),
        ({"delta": float("nan")}, "a share above 0"),
    ],
)
def test_a_rule_that_nothing_can_meet_is_refused(given_: dict[str, float], says: str) -> None:
    with pytest.raises(AskedWrongly, match=says):
        Convergence(**given_)  # type: ignore[arg-type]
