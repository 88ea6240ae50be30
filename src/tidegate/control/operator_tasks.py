"""Cores of segments as tasks of operators: stages run one after the other, so each may use all."""

from collections.abc import Mapping

from tidegate.control.measurement import Measurement, OperatorMeasurement


def clamped(operator: OperatorMeasurement, tasks: int) -> int:
    """The nearest number of tasks that the operator may have."""
    most = tasks if operator.most_tasks is None else min(tasks, operator.most_tasks)
    return max(most, operator.least_tasks, 1)


def tasks_on(measurement: Measurement, cores: Mapping[str, int]) -> dict[str, int]:
    """The operators whose tasks must change so that each segment uses its cores."""
    return {
        operator.name: wanted
        for operator in measurement.operators
        if (wanted := clamped(operator, cores.get(operator.segment, 1))) != operator.tasks
    }


def most_of(measurement: Measurement, segment: str, most: int) -> int:
    """Cores that the segment can use: what its widest operator may have."""
    limits = [op.most_tasks for op in measurement.operators if op.segment == segment]
    known = [limit for limit in limits if limit is not None]
    widest = max(known) if limits and len(known) == len(limits) else most
    return max(min(widest, most), 1)


def shared(measurement: Measurement, cores: int) -> dict[str, int]:
    """Cores for each segment by how busy its operators are: for policies that only count cores."""
    busy = {segment.name: 1e-9 for segment in measurement.segments}
    for operator in measurement.operators:
        if operator.segment in busy:
            busy[operator.segment] += operator.busy_s
    return split(busy, cores)


def split(weights: Mapping[str, float], cores: int) -> dict[str, int]:
    """Cores in proportion to the weights: largest remainders, and one for each at least."""
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
