"""Finds the operator that limits a pipeline, from measurements alone, whichever policy runs."""

import numpy as np

from tidegate.control.bottleneck import LIMITING_LOAD, Bottleneck
from tidegate.control.flow.view import FlowView
from tidegate.control.measurement import Measurement


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
