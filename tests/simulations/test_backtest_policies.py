"""What every policy promises: bounds, more load never fewer machines, determinism."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.control.baselines.ds2 import Ds2
from tidegate.control.baselines.dynamic_allocation import DynamicAllocation
from tidegate.control.baselines.fixed import GroundTruth, StaticPeak
from tidegate.control.baselines.hpa import UtilisationThreshold
from tidegate.control.bounds import Bounds
from tidegate.control.capacity.cycle import Cycle, PlanAhead
from tidegate.control.capacity.mst import TABLE_III, MstPolicy
from tidegate.control.capacity.price import PRICES, Price
from tidegate.control.capacity.priced import PricedCapacity
from tidegate.control.constraints import Constraints
from tidegate.control.measurement import Measurement
from tidegate.control.policy import Policy
from tidegate.forecast import Forecast
from tidegate.forecast.analogues import THRESHOLDS, Analogues, WindowOutlook
from tidegate.forecast.arma import random_walk
from tidegate.models.capacity.bayes import BayesianCapacity
from tidegate.models.capacity.choice import choose

BOUNDS = Bounds(2, 24)
ALLOWED = Constraints(BOUNDS)
SAMPLES = [(m, 3.0 * m * (1 + e)) for m in (1, 3, 5, 8, 12, 20) for e in (-0.02, 0.03)]


def measured(
    minute: int,
    load: float,
    *,
    machines: int = 8,
    asked: int | None = None,
    backlog: float = 0.0,
) -> Measurement:
    """A minute in which `machines` with 3 MB/s each met this load."""
    tau = 3.0 * machines
    processed = min(tau, load + backlog / 60)
    saturated = load + backlog / 60 >= tau
    return Measurement(
        at_s=minute * 60.0,
        interval_s=60.0,
        arrival_rate=load,
        processed_rate=processed,
        backlog_rows=max(0.0, (load - tau) * 60 + backlog),
        cores_asked=machines if asked is None else asked,
        cores_granted=machines,
        saturated=saturated,
        cores_busy=float(machines) if saturated else processed / 3.0,
    )


class LastWithSpread:
    """A forecaster that needs no fit, so that the tests are about the policies."""

    def __init__(self) -> None:
        self._values: list[float] = []

    def observe(self, value: float, at_s: float) -> None:
        self._values.append(value)

    def forecast(self, steps: int) -> Forecast:
        return random_walk(np.array(self._values), steps)


def every_policy() -> list[Policy]:
    made: list[Policy] = [
        UtilisationThreshold(),
        DynamicAllocation(),
        Ds2(),
        StaticPeak(20),
        GroundTruth([3] * 50),
    ]
    for name, techniques in TABLE_III.items():
        forecaster = LastWithSpread() if techniques.forecast else None
        model = choose(SAMPLES, max_machines=BOUNDS.most).model
        made.append(MstPolicy(name, model, 0.95, forecaster=forecaster))
    for minutes in (1, 10):
        made.append(
            PricedCapacity(
                Analogues(length=minutes),
                BayesianCapacity(SAMPLES, max_machines=BOUNDS.most),
                0.95,
                cycle=Cycle(minutes=minutes),
            )
        )
    return made


@given(
    loads=st.lists(st.floats(0.0, 500.0), min_size=25, max_size=40),
    machines=st.integers(BOUNDS.least, BOUNDS.most),
)
@settings(max_examples=8, deadline=None)
def test_no_policy_asks_outside_its_bounds(loads: list[float], machines: int) -> None:
    for policy in every_policy():
        asked = machines
        for minute, load in enumerate(loads, start=1):
            decision = policy.decide(
                measured(minute, load, machines=machines, asked=asked), ALLOWED
            )
            if decision.cores is not None:
                assert BOUNDS.least <= decision.cores <= BOUNDS.most, policy.name
                asked = decision.cores
            assert decision.reason


@given(
    low=st.floats(0.1, 60.0),
    more=st.floats(1.0, 8.0),
    rho=st.sampled_from([0.5, 0.9, 0.99]),
    variance=st.floats(0.0, 25.0),
)
@settings(max_examples=30, deadline=None)
def test_more_load_never_gives_fewer_machines_by_the_papers_equations(
    low: float, more: float, rho: float, variance: float
) -> None:
    model = choose(SAMPLES, max_machines=BOUNDS.most).model
    for name, techniques in TABLE_III.items():
        forecaster = LastWithSpread() if techniques.forecast else None
        policy = MstPolicy(name, model, rho, forecaster=forecaster)
        assert policy.machines(low * more, variance, BOUNDS) >= policy.machines(
            low, variance, BOUNDS
        )


class Fixed:
    """An outlook of one shape at any level."""

    def __init__(self, level: float, shape: np.ndarray) -> None:
        self._outlook = WindowOutlook(level, shape, False, shape)

    def observe(self, load: float, at_s: float) -> None:
        pass

    def outlook(self) -> WindowOutlook:
        return self._outlook


@given(
    low=st.floats(1.0, 40.0),
    more=st.floats(1.0, 5.0),
    spread=st.floats(0.03, 0.6),
    rho=st.sampled_from([0.9, 0.95, 0.99]),
)
@settings(max_examples=25, deadline=None)
def test_more_load_never_gives_fewer_machines_by_the_default_policy(
    low: float, more: float, spread: float, rho: float
) -> None:
    """All else equal: the same present and capacity, the same shape of outlook, a higher level."""
    shape = 1.0 / (1.0 + np.exp(np.clip(THRESHOLDS / spread * 1.7, -50, 50)))

    def asked(level: float) -> int:
        capacity = BayesianCapacity(SAMPLES, max_machines=BOUNDS.most)
        policy = PricedCapacity(Fixed(level, shape), capacity, rho)
        policy.decide(measured(1, 12.0, machines=2), ALLOWED)
        policy.decide(measured(2, 12.0, machines=2), ALLOWED)
        cores = policy.decide(measured(3, 12.0, machines=2), ALLOWED).cores
        return 2 if cores is None else cores

    assert asked(low * more) >= asked(low)


@given(load=st.floats(0.5, 60.0), more=st.floats(1.0, 4.0), machines=st.integers(2, 24))
@settings(max_examples=30, deadline=None)
def test_more_load_never_gives_fewer_machines_by_the_others(
    load: float, more: float, machines: int
) -> None:
    for make in (UtilisationThreshold, DynamicAllocation, Ds2):
        wishes = []
        for rate in (load, load * more):
            cores = make().decide(measured(1, rate, machines=machines), ALLOWED).cores
            wishes.append(machines if cores is None else cores)
        assert wishes[0] <= wishes[1], make.name


def test_policies_repeat_themselves() -> None:
    loads = 20 + 8 * np.sin(np.arange(60) / 5.0)
    for first, second in zip(every_policy(), every_policy(), strict=True):
        for minute, load in enumerate(loads.tolist(), start=1):
            one = first.decide(measured(minute, load), ALLOWED)
            assert one == second.decide(measured(minute, load), ALLOWED), first.name


def test_a_plan_adds_ahead_and_lets_go_at_the_cycle() -> None:
    ahead = PlanAhead(Cycle())
    now = measured(8, 10.0, machines=5)
    assert ahead.plan(9, "more", now).cores == 9
    assert ahead.begin(measured(10, 10.0, machines=9)).holds
    assert ahead.plan(3, "fewer", now).holds
    assert ahead.begin(measured(10, 10.0, machines=5)).cores == 3


def test_the_utilisation_threshold_lets_go_only_after_its_window() -> None:
    policy = UtilisationThreshold(stabilisation_minutes=5)
    assert policy.decide(measured(1, 17.0), ALLOWED).holds  # 71 % of 24: within the tolerance
    holds = [policy.decide(measured(minute, 4.0), ALLOWED).holds for minute in range(2, 7)]
    assert holds == [True, True, True, True, False]


def test_dynamic_allocation_grows_in_doubling_steps_and_keeps_busy_executors() -> None:
    policy = DynamicAllocation()
    assert policy.decide(measured(1, 99.0), ALLOWED).cores == 9
    assert policy.decide(measured(2, 99.0), ALLOWED).cores == 10
    assert policy.decide(measured(3, 99.0), ALLOWED).cores == 12
    assert policy.decide(measured(4, 6.0), ALLOWED).holds


def test_ds2_counts_backlog_to_catch_up() -> None:
    without = Ds2().decide(measured(1, 22.0), ALLOWED).cores
    behind = Ds2().decide(measured(1, 22.0, backlog=20_000.0), ALLOWED).cores
    assert without is not None and behind is not None
    assert behind > without


def test_the_price_rises_until_the_late_minutes_are_within_the_allowance() -> None:
    price = Price(0.95)
    believed = np.full(len(PRICES), 0.01)
    assert price.choose(believed) == 0
    rates = np.linspace(0.4, 0.0, len(PRICES))
    for _ in range(3000):
        price.settle(rates, 0.05)
    chosen = price.choose(believed)
    assert rates[chosen] <= 0.05 + 0.02
    for _ in range(500):
        price.settle(rates, 0.3)  # more was late in truth than the replay says
    assert price.choose(believed) > chosen


def test_the_default_policy_holds_the_level_through_a_gap_of_the_collector() -> None:
    policy = PricedCapacity(
        Analogues(),
        BayesianCapacity(SAMPLES, max_machines=BOUNDS.most),
        0.95,
    )
    rng = np.random.default_rng(3)
    asked = 8
    for minute in range(1, 241):
        load = 0.0 if 200 <= minute < 230 else 18.0 + rng.normal(0, 0.3)
        decision = policy.decide(measured(minute, load, machines=asked), ALLOWED)
        asked = decision.cores if decision.cores is not None else asked
        if minute >= 200:
            assert 7 <= asked <= 14, minute


def test_the_default_policy_catches_up_backlog() -> None:
    def asked(backlog: float) -> int:
        policy = PricedCapacity(
            Analogues(),
            BayesianCapacity(SAMPLES, max_machines=BOUNDS.most),
            0.9,
        )
        for minute in range(1, 121):
            policy.decide(measured(minute, 15.0), ALLOWED)
        cores = policy.decide(measured(121, 15.0, backlog=backlog), ALLOWED).cores
        return 8 if cores is None else cores

    behind = asked(60 * 60 * 8.0)
    # 15 MB/s come and what is left is to be gone in 600 s: (28,800 - 9 * 60) / 600 more
    assert behind * 3.0 * 1.1 >= 15.0 + 47.0
    assert behind > asked(0.0)


@pytest.mark.parametrize("name", list(TABLE_III))
def test_only_learning_policies_learn(name: str) -> None:
    techniques = TABLE_III[name]
    model = choose(SAMPLES, max_machines=BOUNDS.most).model
    before = model.samples
    forecaster = LastWithSpread() if techniques.forecast else None
    policy = MstPolicy(name, model, 0.95, forecaster=forecaster)
    for minute in range(1, 21):
        policy.decide(measured(minute, 40.0), ALLOWED)
    assert (model.samples > before) == techniques.learning
