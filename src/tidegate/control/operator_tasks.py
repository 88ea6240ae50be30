"""Turns the cores of a segment into tasks of its operators.

The stages of a micro-batch run one after the other, so each may use all cores of the segment.
"""

from collections.abc import Mapping

from tidegate.control.measurement import Measurement, OperatorMeasurement


def clamped(operator: OperatorMeasurement, tasks: int) -> int:
    """The nearest number of tasks that the operator may have."""
    most = tasks if operator.most_tasks is None else min(tasks, operator.most_tasks)
    return max(most, operator.least_tasks, 1)


def tasks_on(measurement: Measurement, cores: Mapping[str, int]) -> dict[str, int]:
    """New task counts of the operators that must change for each segment to use its cores."""
    return {
        operator.name: wanted
        for operator in measurement.operators
        if (wanted := clamped(operator, cores.get(operator.segment, 1))) != operator.tasks
    }


def most_of(measurement: Measurement, segment: str, most: int) -> int:
    """Cores that the segment can use: the most tasks that its widest operator may have."""
    limits = [op.most_tasks for op in measurement.operators if op.segment == segment]
    known = [limit for limit in limits if limit is not None]
    widest = max(known) if limits and len(known) == len(limits) else most
    return max(min(widest, most), 1)


def busy_of(measurement: Measurement) -> dict[str, float]:
    """How long the operators of each segment were at work in the batches that ended."""
    busy = {segment.name: 1e-9 for segment in measurement.segments}
    for operator in measurement.operators:
        if operator.segment in busy:
            busy[operator.segment] += operator.busy_s
    return busy


def shared(measurement: Measurement, cores: int) -> dict[str, int]:
    """Divide cores among the segments by how busy their operators were in this tick."""
    return split(busy_of(measurement), cores)


def evenly(measurement: Measurement, cores: int) -> dict[str, int]:
    """New task counts of the operators that must change for the segments to divide cores evenly."""
    each = max(cores // max(len(measurement.segments), 1), 1)
    return tasks_on(measurement, {one.name: each for one in measurement.segments})


def split(weights: Mapping[str, float], cores: int) -> dict[str, int]:
    """Divide cores in proportion to the weights, by largest remainders, at least one for each."""
    names = list(weights)
    if not names:
        return {}
    spare = max(cores - len(names), 0)
    total = sum(weights.values())
    exact = {name: spare * weights[name] / total for name in names}
    given = {name: 1 + int(exact[name]) for name in names}
    left = spare - sum(int(exact[name]) for name in names)
    for name in sorted(names, key=lambda name: (int(exact[name]) - exact[name], name))[:left]:
        given[name] += 1
    return given
