"""A tick as a row of numbers, and many of them as columns for charts; NaN where one has none."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from tidegate.control.measurement import Measurement, OperatorMeasurement
from tidegate.control.record import Record
from tidegate.view.live.totals import RunTotals

Columns = dict[str, NDArray[np.float64]]
_NONE = math.nan


@dataclass(frozen=True, slots=True)
class OperatorTick:
    """What charts show of one operator during a tick."""

    tasks: float
    imbalance: float
    hottest: float
    """Share of the operator's rows that its hottest shard had, in percent; NaN without shards."""


@dataclass(frozen=True, slots=True)
class Tick:
    """What charts show of one tick."""

    time: float
    """Its end, in milliseconds since the epoch, as browsers count."""
    load: float
    completed: float
    forecast: float
    """The load that was expected up to the horizon of the forecast."""
    planned: float
    """The forecast with its margin: the load that cores are planned for."""
    backlog: float
    left: float
    """The lag in rows: what batches left in sources that tell it."""
    behind: float
    """The lag in seconds of arrivals."""
    wanted: float
    granted: float
    busy: float
    mean: float
    p50: float
    p95: float
    p99: float
    target: float
    shed: float
    """Rows shed per second."""
    kept: float
    """Percent of the rows that the next batch keeps."""
    used: float
    """Core-seconds since the start."""


NAMES = tuple(field.name for field in fields(Tick))


def tick_of(record: Record, totals: RunTotals) -> Tick:
    """The numbers of a record; `totals` already contain it."""
    tick, latency = record.measurement, record.measurement.latency
    forecast = record.beliefs.get("forecast_rate", _NONE)
    shed = sum(source.shed for source in tick.sources)
    return Tick(
        time=1000.0 * tick.at_s,
        load=tick.arrival_rate,
        completed=tick.processed_rate,
        forecast=forecast,
        planned=forecast * record.beliefs.get("margin", 1.0),
        backlog=tick.backlog_rows,
        left=_NONE if tick.lag_rows is None else tick.lag_rows,
        behind=behind_s(tick),
        wanted=tick.cores_asked,
        granted=tick.cores_granted,
        busy=_NONE if tick.busy_of_granted is None else tick.busy_of_granted,
        mean=latency.mean_s if latency else _NONE,
        p50=latency.p50_s if latency else _NONE,
        p95=latency.p95_s if latency else _NONE,
        p99=latency.p99_s if latency else _NONE,
        target=_NONE if record.target_s is None else record.target_s,
        shed=shed / tick.interval_s if tick.interval_s > 0.0 else 0.0,
        kept=100.0 * tick.keep,
        used=totals.core_seconds,
    )


def behind_s(tick: Measurement) -> float:
    """The lag in seconds: what the source tells, else the backlog over the arrival rate."""
    if tick.lag_s is not None:
        return tick.lag_s
    if tick.backlog_rows <= 0.0:
        return 0.0
    return tick.backlog_rows / tick.arrival_rate if tick.arrival_rate > 0.0 else _NONE


def operator_tick(one: OperatorMeasurement) -> OperatorTick:
    """The numbers of an operator."""
    hot = hottest_shard(one)
    return OperatorTick(one.tasks, one.imbalance, _NONE if hot is None else 100.0 * hot[1])


def hottest_shard(one: OperatorMeasurement) -> tuple[int, float] | None:
    """The shard with the most rows of the tick, and its share of them; None without any."""
    total = sum(one.shard_rows)
    if one.dealt or total <= 0:
        return None
    most = max(one.shard_rows)
    return one.shard_rows.index(most), most / total


def columns_of_ticks(ticks: Sequence[Tick]) -> Columns:
    """One column for each number."""
    return {name: _column(getattr(tick, name) for tick in ticks) for name in NAMES}


def _column(values: Iterable[float]) -> NDArray[np.float64]:
    return np.fromiter(values, dtype=np.float64)
