"""A pipeline as a flow network of stages, from measurements alone, whichever policy runs."""

import math
from dataclasses import dataclass

import numpy as np

from tidegate.control.learning.outliers import FIRST as FIRST_BATCH
from tidegate.control.measurement import Measurement, OperatorMeasurement
from tidegate.models.flow.bandwidth import LinkBandwidth
from tidegate.models.flow.regulation import data_bandwidth, link_capacity, task_capacity
from tidegate.models.flow.stages import StageFlow

_FADING = 0.3
"""The weight that an operator's earlier rows keep after a tick in which it processed some."""
_MOST_FETCHED = 0.9
"""The share of a bandwidth that fetched state may take: a tick of state does not stop the rows."""


@dataclass(frozen=True, slots=True)
class OperatorRates:
    """What is known of an operator's rows."""

    visits: float
    """Its rows for each row that enters its segment."""
    service_rate: float
    """mu: rows per second that a task completes while it works."""
    link_rate: float
    """Rows per second that its links bring to a task (eq. 10); infinite while no limit is seen."""
    imbalance: float
    emitted: float
    """Rows that leave it for each row that enters it."""

    @property
    def capacity_rate(self) -> float:
        """Rows per second that one task can take."""
        return task_capacity(self.service_rate, self.link_rate)


@dataclass(frozen=True, slots=True)
class _Faded:
    """An operator's rows so far, of which the older ones count less.

    Every row counts alike: a batch of three rows tells less about their cost than one of thousands.
    """

    rows: float
    entered: float
    """Rows that entered its segment."""
    emitted: float
    busy_s: float

    def plus(self, more: "_Faded") -> "_Faded":
        """With the rows of one more tick."""
        return _Faded(
            _FADING * self.rows + more.rows,
            _FADING * self.entered + more.entered,
            _FADING * self.emitted + more.emitted,
            _FADING * self.busy_s + more.busy_s,
        )


class FlowView:
    """Remembers what each operator's rows cost, for ticks in which no batch ended.

    Rates and costs come from the same batches. Old rows fade within a few ticks, so that a
    bottleneck that moves to another operator is seen soon. The first batch of a run teaches
    nothing: its tasks start workers and load code, and it often has a handful of rows.
    """

    def __init__(self) -> None:
        self._known: dict[str, OperatorRates] = {}
        self._faded: dict[str, _Faded] = {}
        self._links: dict[str, LinkBandwidth] = {}
        self.operators: tuple[OperatorMeasurement, ...] = ()
        """The operators of the last flow, in its order."""
        self.segments: tuple[str, ...] = ()
        self.rates: tuple[float, ...] = ()
        """Rows per second offered to each segment."""

    def update(self, measurement: Measurement) -> StageFlow | None:
        """The flow at the end of this tick; None until every operator has processed rows."""
        self._learn(measurement)
        operators = tuple(one for one in measurement.operators if one.name in self._known)
        if not operators or len(operators) < len(measurement.operators):
            return None
        rates = {one.name: one.arrival_rate for one in measurement.segments}
        names = list(dict.fromkeys(one.segment for one in operators))
        self.operators, self.segments = operators, tuple(names)
        self.rates = tuple(rates.get(name, measurement.arrival_rate) for name in names)
        place = {name: number for number, name in enumerate(names)}
        return StageFlow(
            np.array([place[one.segment] for one in operators], dtype=np.int64),
            np.array([self._demand(one) for one in operators], dtype=np.float64),
            np.array([max(one.tasks, 1) for one in operators], dtype=np.float64),
            np.array([one.inside is not None for one in operators], dtype=np.bool_),
        )

    def known(self, operator: str) -> OperatorRates:
        """What is known of an operator of the last flow."""
        return self._known[operator]

    def offered_rate(self, one: OperatorMeasurement) -> float:
        """lambda_i: rows per second that an operator of the last flow is offered."""
        return self.rates[self.segments.index(one.segment)] * self._known[one.name].visits

    def emitted_rate(self, one: OperatorMeasurement) -> float:
        """Rows per second that leave an operator of the last flow."""
        return self.offered_rate(one) * self._known[one.name].emitted

    def _demand(self, one: OperatorMeasurement) -> float:
        """lambda_i delta_i / c_i: how many tasks its rows keep occupied."""
        known = self._known[one.name]
        return self.offered_rate(one) * known.imbalance / known.capacity_rate

    def _learn(self, measurement: Measurement) -> None:
        taken = {one.name: sum(batch.rows for batch in one.batches) for one in measurement.segments}
        begin = {
            one.name
            for one in measurement.segments
            if one.batches and all(batch.outlier == FIRST_BATCH for batch in one.batches)
        }
        for one in measurement.operators:
            if one.service_rate <= 0.0 or one.rows <= 0 or one.segment in begin:
                continue
            entered = taken.get(one.segment, 0)
            visits = one.rows / entered if entered else 1.0
            if one.segment not in taken and min(one.arrival_rate, measurement.arrival_rate) > 0.0:
                visits = one.arrival_rate / measurement.arrival_rate
            rows = float(one.rows)
            seen = _Faded(rows, rows / visits, float(one.rows_out), rows / one.service_rate)
            old = self._faded.get(one.name)
            seen = self._faded[one.name] = seen if old is None else old.plus(seen)
            self._known[one.name] = OperatorRates(
                seen.rows / seen.entered,
                seen.rows / seen.busy_s,
                self._link_rate(one, measurement.interval_s),
                max(one.imbalance, 1.0),
                seen.emitted / seen.rows,
            )

    def _link_rate(self, one: OperatorMeasurement, interval_s: float) -> float:
        """The rate of the links into a task (eq. 9, 10).

        State that the tasks fetched during the tick came over the same links.
        """
        links = self._links.setdefault(one.name, LinkBandwidth())
        if one.task_wait_s is not None and one.task_bytes > 0.0:
            links.add(one.task_bytes, one.task_wait_s)
        bytes_s = links.bytes_s
        if math.isinf(bytes_s) or one.row_bytes <= 0.0:
            return math.inf
        fetched_bytes_s = one.durable_bytes / (max(one.tasks, 1) * max(interval_s, 1e-9))
        left = data_bandwidth(bytes_s, min(fetched_bytes_s, _MOST_FETCHED * bytes_s))
        return link_capacity(left, one.row_bytes)
