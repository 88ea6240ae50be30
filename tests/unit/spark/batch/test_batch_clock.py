"""Clocks that never go back, on a wall clock that does."""

from types import SimpleNamespace

from tidegate.spark.batch.batch_clock import BatchClock, TickClock
from tidegate.spark.batch.segment import SegmentRun

HOUR_US = 3_600_000_000


class Clocks:
    """A wall clock that can be set, and a monotonic one."""

    def __init__(self) -> None:
        self.wall_us = 10 * HOUR_US
        self.passed_us = 0

    def clock(self) -> BatchClock:
        return BatchClock(lambda: self.wall_us * 1000, lambda: self.passed_us * 1000)

    def wait(self, passed_us: int) -> None:
        self.wall_us += passed_us
        self.passed_us += passed_us


def test_it_is_the_wall_clock_as_long_as_that_goes_on() -> None:
    clocks = Clocks()
    clock = clocks.clock()
    assert clock.now_us() == clocks.wall_us
    clocks.wait(250_000)
    assert clock.now_us(clocks.wall_us - 1) == clocks.wall_us


def test_a_wall_clock_that_is_set_back_does_not_turn_batches_round() -> None:
    clocks = Clocks()
    clock = clocks.clock()
    first_us = clock.now_us()
    clocks.wait(1_000_000)
    clocks.wall_us -= HOUR_US
    assert clock.now_us() == first_us + 1_000_000, "it goes on at its own pace"
    clocks.wait(500_000)
    assert clock.now_us() == first_us + 1_500_000
    assert clock.now_us() == first_us + 1_500_001, "no two batches have the same time"
    clocks.wait(2 * HOUR_US)
    assert clock.now_us() == clocks.wall_us, "once the wall clock has caught up it counts again"


def test_a_plan_of_an_earlier_run_is_not_undercut() -> None:
    clocks = Clocks()
    earlier_us = clocks.wall_us + HOUR_US
    clock = clocks.clock()
    assert clock.now_us(earlier_us) == earlier_us + 1
    clocks.wait(2_000_000)
    assert clock.now_us(earlier_us + 1) == earlier_us + 2_000_001


def test_a_segment_plans_its_batches_by_this_clock() -> None:
    clocks = Clocks()
    newest = SimpleNamespace(at_us=clocks.wall_us + HOUR_US)
    made = []
    segment = SimpleNamespace(
        _begun_us=None,
        _clock=clocks.clock(),
        _transactions=SimpleNamespace(plans=SimpleNamespace(newest=lambda: newest)),
        _gathered_s=lambda now_s: 0.0,
        _offered=dict,
        allocation=SimpleNamespace(plan=lambda batch, at_us, *_, **__: made.append(at_us)),
        compiler=SimpleNamespace(sources=SimpleNamespace(unique={})),
    )
    segment._before_us = lambda: SegmentRun._before_us(segment)
    SegmentRun._new_plan(segment, 7, {})
    assert made == [newest.at_us + 1], "the last run's clock was ahead"
    segment._begun_us = made[0]
    clocks.wait(1_000_000)
    SegmentRun._new_plan(segment, 8, {})
    assert made[1] == made[0] + 1_000_000


def test_ticks_go_on_when_the_wall_clock_goes_back() -> None:
    clock = TickClock(1000.0)
    assert not clock.tick(1001.0, 1.0)
    assert (clock.interval_s, clock.shift_s) == (1.0, 0.0)
    assert clock.tick(401.0, 1.0)
    assert (clock.interval_s, 401.0 + clock.shift_s) == (1.0, 1002.0)
    assert not clock.tick(402.5, 1.0)
    assert (clock.interval_s, 402.5 + clock.shift_s) == (1.5, 1003.5)
