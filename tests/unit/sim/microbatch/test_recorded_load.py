"""The load of a recorded run: idle spans have no rows, and a backlog is no rate."""

from dataclasses import replace
from typing import Any

import pytest

from tests.helpers.pipeline_worlds import measured
from tidegate.control.decision import hold
from tidegate.control.record import Record
from tidegate.sim.microbatch.recorded_load import RecordedLoad, recorded_load

STARTS_S = 1_700_000_000.0


def ticked(tick: int, **told: Any) -> Record:
    """A tick at whose end a batch of 0.7 s ends."""
    return Record(
        tick=tick,
        policy="latency",
        target_s=2.0,
        measurement=measured(tick, **told),
        decision=hold("steady"),
        acted=False,
    )


def busy(ticks: range, rows: int = 1000) -> list[Record]:
    """A batch a second; the first batch of a run begins after 300 ms."""
    return [ticked(tick, rows=300 if tick == 1 else rows) for tick in ticks]


def idle(ticks: range, backlog: float = 0.0) -> list[Record]:
    """Ticks without a batch. The told rate is the last that was known, as on Spark."""
    return [ticked(tick, batches=False, backlog=backlog) for tick in ticks]


def triggered(record: Record, every_s: float) -> Record:
    segments = tuple(replace(one, trigger_s=every_s) for one in record.measurement.segments)
    return replace(record, measurement=replace(record.measurement, segments=segments))


def load_of(records: list[Record]) -> RecordedLoad:
    return recorded_load(records, "main", STARTS_S, alone=True)


def rows_until(load: RecordedLoad, second: float) -> float:
    return float(load.profile.cumulative(round(second * 1000)))


def test_nothing_arrives_after_the_last_batch_of_a_run_that_idles() -> None:
    load = load_of(busy(range(1, 41)) + idle(range(41, 101)))
    assert rows_until(load, 100.0) == pytest.approx(39_300.0)
    assert load.profile.rate(99.0) == 0.0


def test_rows_that_wait_at_the_end_arrived_after_the_last_batch_began() -> None:
    load = load_of(busy(range(1, 41)) + idle(range(41, 43), backlog=2500.0))
    assert rows_until(load, 42.0) == pytest.approx(41_800.0)


def test_rows_after_a_pause_arrived_after_it() -> None:
    load = load_of(busy(range(1, 21)) + idle(range(21, 60)) + busy(range(60, 81)))
    assert rows_until(load, 79.3) == pytest.approx(40_300.0)
    assert rows_until(load, 57.0) == pytest.approx(19_300.0)


def test_a_pause_that_a_fixed_interval_hides_may_have_rows() -> None:
    """Between two triggers nobody looks: rows may have come since the last one."""
    quiet = [triggered(one, 5.0) for one in idle(range(21, 60))]
    load = load_of([*busy(range(1, 21)), *quiet, ticked(60, rows=4000), *busy(range(61, 81))])
    assert rows_until(load, 54.0) == pytest.approx(19_300.0)
    assert rows_until(load, 57.0) > 20_300.0


def test_rows_from_before_the_run_are_a_backlog() -> None:
    """The first batch began with the run, and the second one has what arrived meanwhile."""
    first = ticked(1, rows=100_000, duration_s=1.0, rate=0.0)
    load = load_of([first, *busy(range(2, 21))])
    assert load.backlog_rows == 100_000.0
    assert load.profile.rates.max() < 2000.0
    assert rows_until(load, 20.0) == pytest.approx(19_000.0, abs=600.0)


def test_a_backlog_that_a_later_first_batch_takes_is_told_from_the_rate() -> None:
    """The batch began 300 ms after the run; at 1000 rows/s, 300 of its rows arrived in them."""
    load = load_of([ticked(1, rows=50_000, rate=1000.0), *busy(range(2, 21))])
    assert load.backlog_rows == pytest.approx(49_700.0)
    assert load.profile.rates.max() < 2000.0


def test_a_backlog_that_several_limited_batches_take_is_one() -> None:
    limited = [ticked(tick, rows=10_000, rate=1000.0) for tick in range(1, 6)]
    load = load_of([*limited, *busy(range(6, 31))])
    assert load.backlog_rows == pytest.approx(50_000.0 - 4300.0)
    assert load.profile.rates.max() < 2000.0


def test_a_usual_first_batch_is_no_backlog() -> None:
    load = load_of([ticked(1, rows=320), *busy(range(2, 21))])
    assert load.backlog_rows == 0.0
    assert rows_until(load, 0.3) == pytest.approx(320.0)
