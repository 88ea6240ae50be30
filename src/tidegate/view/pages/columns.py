"""A run as columns for charts: one value per tick, in a unit of time that suits its length."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.control.measurement import OperatorMeasurement
from tidegate.control.record import Record

Column = NDArray[np.float64]

_UNITS = (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0))
_LEAST_UNITS = 4
"""A unit is used when the run lasts at least this many of it."""


@dataclass(frozen=True, slots=True)
class RunColumns:
    """One value per tick; NaN where a tick has none."""

    unit: str
    per_unit_s: float
    start_s: float
    time: Column
    """The end of each tick, in units since the start of the run."""
    load: Column
    processed: Column
    backlog: Column
    cores_asked: Column
    cores_granted: Column
    cores_busy: Column
    mean_s: Column
    p95_s: Column
    predicted_s: Column
    target_s: Column
    tasks: dict[str, Column]
    """By operator, those with the most tasks first."""
    imbalance: dict[str, Column]
    """By operator, without operators that are always in balance."""

    def since_start(self, at_s: float) -> float:
        """A time, in units since the start."""
        return (at_s - self.start_s) / self.per_unit_s


def columns_of(records: Sequence[Record]) -> RunColumns:
    """The columns of these records, of which there must be at least one."""
    ticks = [record.measurement for record in records]
    start_s = ticks[0].at_s - ticks[0].interval_s
    span_s = ticks[-1].at_s - start_s
    unit, per_unit_s = next(
        (pair for pair in _UNITS if span_s >= _LEAST_UNITS * pair[1]), ("seconds", 1.0)
    )
    by_name = [{one.name: one for one in tick.operators} for tick in ticks]
    names = list(dict.fromkeys(name for operators in by_name for name in operators))
    tasks = {name: _column(_tasks(operators.get(name)) for operators in by_name) for name in names}
    imbalance = {
        name: _column(_imbalance(operators.get(name)) for operators in by_name) for name in names
    }
    return RunColumns(
        unit=unit,
        per_unit_s=per_unit_s,
        start_s=start_s,
        time=_column((tick.at_s - start_s) / per_unit_s for tick in ticks),
        load=_column(tick.arrival_rate for tick in ticks),
        processed=_column(tick.processed_rate for tick in ticks),
        backlog=_column(tick.backlog_rows for tick in ticks),
        cores_asked=_column(tick.cores_asked for tick in ticks),
        cores_granted=_column(tick.cores_granted for tick in ticks),
        cores_busy=_column(tick.busy_of_granted for tick in ticks),
        mean_s=_column(tick.latency.mean_s if tick.latency else None for tick in ticks),
        p95_s=_column(tick.latency.p95_s if tick.latency else None for tick in ticks),
        predicted_s=_column(record.predicted_latency_s for record in records),
        target_s=_column(record.target_s for record in records),
        tasks=dict(sorted(tasks.items(), key=lambda pair: -float(np.nanmax(pair[1])))),
        imbalance={name: one for name, one in imbalance.items() if np.nanmax(one) > 1.0},
    )


def _column(values: Iterable[float | None]) -> Column:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _tasks(operator: OperatorMeasurement | None) -> float | None:
    return None if operator is None else operator.tasks


def _imbalance(operator: OperatorMeasurement | None) -> float | None:
    return None if operator is None else operator.imbalance
