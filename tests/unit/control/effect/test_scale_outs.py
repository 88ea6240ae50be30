"""When more cores count as without effect, and what ends that, on measurements made by hand."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.helpers.pipeline_worlds import measured
from tidegate.control.bottleneck import Bottleneck
from tidegate.control.bounds import Bounds
from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision, hold
from tidegate.control.effect.only_with_effect import OnlyWithEffect
from tidegate.control.effect.scale_outs import AGAIN_S, MET_S, ScaleOutWatch
from tidegate.control.effect.series import BeforeAndAfter
from tidegate.control.lag import Lag, PartitionLag
from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.measurement import Measurement
from tidegate.control.record import Record
from tidegate.control.target import Target


class Driven:
    """A watch with its model, fed one batch a second. A batch of 2 cores takes 3 s."""

    def __init__(self) -> None:
        self.model = PipelineModel()
        self.watch = ScaleOutWatch(self.model, Target(2.0))
        self.tick = 0
        self.last: Measurement | None = None

    def see(
        self,
        cores: int,
        *,
        ticks: int = 6,
        gains: float = 0.0,
        rate: float = 1000.0,
        change: Callable[[Measurement], Measurement] = lambda one: one,
        bottleneck: Bottleneck | None = None,
    ) -> None:
        """`gains` is the part of the work that more cores share; without it they do nothing."""
        for _ in range(ticks):
            self.tick += 1
            rows = rate * 2.7
            shared_s = rows * 1e-3 * (gains * 2.0 / cores + 1.0 - gains)
            duration_s = (0.3 + shared_s) * (1.0 + 0.01 * (self.tick % 3))
            seen = measured(
                self.tick,
                rate=rate,
                cores=cores,
                duration_s=duration_s,
                rows=round(rows),
                latency_s=1.5 * duration_s,
            )
            # Batches of a second, one after the other, however long they are said to last.
            self.last = change(seen)
            self.model.learn(self.last)
            self.watch.observe(self.last, bottleneck)

    @property
    def found(self) -> bool:
        return self.watch.no_effect is not None


def limiting(operator: str) -> Bottleneck:
    return Bottleneck(
        operator=operator, segment="main", tasks=8, load=0.95, gain=0.1, capacity_rate=1000.0
    )


def stopped() -> Driven:
    """Three scale-outs without effect."""
    driven = Driven()
    for cores in (2, 4, 6, 8):
        assert not driven.found
        driven.see(cores, ticks=8, bottleneck=limiting("work"))
    assert driven.found
    return driven


def test_three_scale_outs_without_effect_are_noticed_and_two_are_not() -> None:
    driven = stopped()
    found = driven.watch.no_effect
    assert found is not None
    assert (found.times, found.from_cores, found.to_cores) == (3, 2, 8)
    assert found.duration_ratio == pytest.approx(1.0, abs=0.05)
    assert found.expected_ratio < 0.8
    assert "3 scale-outs in a row, from 2 to 8 cores" in found.words
    driven.see(8)
    assert driven.watch.no_effect == found, "its words do not change while it holds"


@pytest.mark.parametrize("gains", [1.0, 0.6])
def test_batches_that_get_faster_are_an_effect(gains: float) -> None:
    driven = Driven()
    for cores in (2, 4, 6, 8, 12, 16):
        driven.see(cores, ticks=8, gains=gains)
    assert not driven.found


def test_an_effect_in_between_begins_the_count_anew() -> None:
    driven = Driven()
    for cores in (2, 4, 6):
        driven.see(cores, ticks=8)
    driven.see(8, ticks=8, gains=1.0)
    for cores in (10, 12):
        driven.see(cores, ticks=8, gains=0.75)
    assert not driven.found


def test_a_load_that_rose_meanwhile_is_no_excuse_and_no_fault() -> None:
    for gains, noticed in ((0.0, True), (1.0, False)):
        driven = Driven()
        for cores, rate in ((2, 1000.0), (4, 1200.0), (6, 1500.0), (8, 1900.0)):
            driven.see(cores, ticks=8, gains=gains, rate=rate)
        assert driven.found is noticed


def test_scale_outs_while_the_target_is_met_are_not_judged() -> None:
    def met(one: Measurement) -> Measurement:
        assert one.latency is not None
        return replace(one, latency=replace(one.latency, mean_s=1.0))

    driven = Driven()
    for cores in (2, 4, 6, 8, 10):
        driven.see(cores, ticks=8, change=met)
    assert not driven.found


def test_rows_that_are_shed_miss_the_target() -> None:
    def shed(one: Measurement) -> Measurement:
        assert one.latency is not None
        return replace(one, keep=0.5, latency=replace(one.latency, mean_s=1.0))

    driven = Driven()
    for cores in (2, 4, 6, 8):
        driven.see(cores, ticks=8, change=shed)
    assert driven.found


def test_cores_that_have_not_come_are_not_judged() -> None:
    driven = Driven()
    driven.see(2, ticks=8)
    for cores in (4, 6, 8):
        driven.see(cores, ticks=8, change=lambda one: replace(one, cores_granted=2))
    assert not driven.found


def test_a_scale_in_ends_a_series() -> None:
    driven = Driven()
    for cores in (2, 4, 6, 3, 4, 5):
        driven.see(cores, ticks=8)
    assert not driven.found


def test_steps_too_small_to_be_seen_do_not_count() -> None:
    driven = Driven()
    for cores in (60, 61, 62, 63, 64):
        driven.see(cores, ticks=8)
    assert not driven.found


def test_it_ends_after_some_time_and_one_more_step_is_enough_then() -> None:
    driven = stopped()
    driven.see(8, ticks=round(AGAIN_S) + 1)
    assert not driven.found
    driven.see(10, ticks=8)
    found = driven.watch.no_effect
    assert found is not None
    assert (found.times, found.to_cores, found.again_s) == (3, 10, 2.0 * AGAIN_S)


def partitioned(count: int) -> Callable[[Measurement], Measurement]:
    def told(one: Measurement) -> Measurement:
        parts = tuple(
            PartitionLag(topic="ads", partition=number, behind_rows=0, taken_rows=10)
            for number in range(count)
        )
        (segment,) = one.segments
        return replace(one, segments=(replace(segment, lag=Lag(partitions=parts)),))

    return told


def test_it_ends_when_the_source_gets_more_partitions() -> None:
    driven = Driven()
    for cores in (2, 4, 6, 8):
        driven.see(cores, ticks=8, change=partitioned(2))
    assert driven.found
    driven.see(8, ticks=2, change=partitioned(8))
    assert not driven.found


def imbalanced(delta: float) -> Callable[[Measurement], Measurement]:
    def told(one: Measurement) -> Measurement:
        (segment,) = one.segments
        batches = tuple(replace(batch, imbalance=delta) for batch in segment.batches)
        return replace(one, segments=(replace(segment, batches=batches),))

    return told


@pytest.mark.parametrize(
    "change",
    [
        {"rate": 1800.0, "ticks": 12},
        {"rate": 500.0, "ticks": 12},
        {"change": imbalanced(2.0), "ticks": 8},
        {"bottleneck": limiting("other"), "ticks": 6},
        {
            "change": lambda one: replace(one, latency=replace(one.latency, mean_s=1.0)),
            "ticks": round(MET_S) + 2,
        },
    ],
    ids=["more load", "less load", "another balance", "another bottleneck", "met for long"],
)
def test_it_ends_when_something_changes(change: dict[str, object]) -> None:
    driven = stopped()
    driven.see(8, **change)  # type: ignore[arg-type]
    assert not driven.found


def test_it_ends_with_the_query() -> None:
    def renamed(one: Measurement) -> Measurement:
        (segment,) = one.segments
        return replace(one, segments=(replace(segment, name="another"),))

    driven = stopped()
    driven.see(8, ticks=1, change=renamed)
    assert not driven.found


def test_the_same_bottleneck_does_not_end_it() -> None:
    driven = stopped()
    for bottleneck in (None, limiting("work"), replace(limiting("other"), load=0.5)):
        driven.see(8, ticks=8, bottleneck=bottleneck)
        assert driven.found


class Asks:
    """A policy that asks for so many cores."""

    name = "asks"

    def __init__(self, cores: int | None) -> None:
        self.cores = cores

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        if self.cores is None:
            return hold("nothing")
        return Decision(reason="more", cores=self.cores, tasks={"work": self.cores})


@pytest.mark.parametrize(("asked", "cores"), [(12, None), (8, 8), (4, 4), (None, None)])
def test_no_policy_gets_more_cores_meanwhile(asked: int | None, cores: int | None) -> None:
    driven = stopped()
    assert driven.last is not None
    decision = OnlyWithEffect(Asks(asked), driven.watch).decide(
        driven.last, Constraints(Bounds(1, 24))
    )
    assert decision.cores == cores
    found = driven.watch.no_effect
    assert found is not None and decision.notes == (found.words,)
    if asked == 12:
        assert decision.tasks == {}
        assert "3 scale-outs in a row had no effect, so it stays at 8 cores" in decision.reason


def test_a_minimum_of_the_user_is_kept_all_the_same() -> None:
    driven = stopped()
    assert driven.last is not None
    decision = OnlyWithEffect(Asks(12), driven.watch).decide(
        driven.last, Constraints(Bounds(10, 24))
    )
    assert decision.cores == 10


def test_before_it_is_noticed_a_policy_is_left_alone() -> None:
    watch = ScaleOutWatch(PipelineModel(), Target(2.0))
    seen = measured(1)
    decision = OnlyWithEffect(Asks(12), watch).decide(seen, Constraints(Bounds(1, 24)))
    assert decision == Asks(12).decide(seen, Constraints(Bounds(1, 24)))


def test_a_record_tells_it_and_is_read_again() -> None:
    driven = stopped()
    assert driven.last is not None
    record = Record(
        tick=1,
        policy="latency",
        target_s=2.0,
        measurement=driven.last,
        decision=hold("nothing"),
        acted=False,
        no_effect=driven.watch.no_effect,
    )
    assert Record.from_json(record.to_json()) == record


@pytest.mark.parametrize(
    ("compared", "effect", "none"),
    [
        (BeforeAndAfter(ratio=0.5, expected=0.5), True, False),
        (BeforeAndAfter(ratio=0.86, expected=0.5), True, False),
        (BeforeAndAfter(ratio=0.90, expected=0.5), False, True),
        (BeforeAndAfter(ratio=0.97, expected=1.0), False, True),
        (BeforeAndAfter(ratio=0.94, expected=1.0), True, False),
        (BeforeAndAfter(ratio=0.95, expected=0.7, growth=4.0, more=1.4), False, False),
        (BeforeAndAfter(ratio=1.05, expected=0.7, growth=4.0, more=1.4), False, True),
        (BeforeAndAfter(ratio=0.95, expected=0.3, growth=4.0, more=3.0), False, True),
    ],
)
def test_what_counts_as_an_effect(compared: BeforeAndAfter, effect: bool, none: bool) -> None:
    assert (compared.has_effect, compared.has_none) == (effect, none)
