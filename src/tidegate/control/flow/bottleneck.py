"""Finds the operator that limits a pipeline, from measurements alone, whichever policy runs."""

import numpy as np

from tidegate.control.bottleneck import LIMITING_LOAD, Bottleneck
from tidegate.control.measurement import Measurement, OperatorMeasurement
from tidegate.models.flow.stages import StageFlow

_FADING = 0.3
"""The weight that an operator's earlier rates keep after a tick in which it processed rows."""


class FlowView:
    """Remembers what each operator's rows cost, for ticks in which no batch ended.

    Rates and costs come from the same batches. Old values fade within a few ticks, so that a
    bottleneck that moves to another operator is seen soon.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, float, float]] = {}
        """For each operator: rows per row of its segment, core seconds per row, imbalance."""
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
        demand = []
        for one in operators:
            visits, cost_s, imbalance = self._known[one.name]
            demand.append(self.rates[place[one.segment]] * visits * cost_s * imbalance)
        return StageFlow(
            np.array([place[one.segment] for one in operators], dtype=np.int64),
            np.array(demand, dtype=np.float64),
            np.array([max(one.tasks, 1) for one in operators], dtype=np.float64),
        )

    def _learn(self, measurement: Measurement) -> None:
        taken = {one.name: sum(batch.rows for batch in one.batches) for one in measurement.segments}
        for one in measurement.operators:
            if one.service_rate <= 0.0 or one.rows <= 0:
                continue
            entered = taken.get(one.segment, 0)
            visits = one.rows / entered if entered else 1.0
            if one.segment not in taken and measurement.arrival_rate > 0.0:
                visits = one.arrival_rate / measurement.arrival_rate
            cost_s = 1.0 / one.service_rate
            old = self._known.get(one.name)
            if old is not None:
                visits += _FADING * (old[0] - visits)
                cost_s += _FADING * (old[1] - cost_s)
            self._known[one.name] = (visits, cost_s, max(one.imbalance, 1.0))


class BottleneckFinder:
    """Finds the bottleneck of every tick."""

    def __init__(self) -> None:
        self._view = FlowView()

    def find(self, measurement: Measurement) -> Bottleneck | None:
        """The bottleneck; None without load, or while the operators' costs are unknown."""
        flow = self._view.update(measurement)
        if flow is None:
            return None
        loads = flow.loads
        worst = int(np.argmax(loads))
        if loads[worst] <= 0.0:
            return None
        place = flow.first_behind(worst)
        one = self._view.operators[place]
        beside = tuple(
            self._view.operators[flow.first_behind(segment)].name
            for segment in np.argsort(-loads).tolist()
            if segment != worst and loads[segment] >= LIMITING_LOAD
        )
        return Bottleneck(
            operator=one.name,
            segment=one.segment,
            tasks=one.tasks,
            load=float(loads[worst]),
            gain=float(flow.gains()[place]),
            capacity_rate=measurement.arrival_rate / float(loads[worst]),
            may_grow=one.most_tasks is None or one.tasks < one.most_tasks,
            beside=beside,
        )
