"""Releases cores that belong to another pipeline's share at once, whatever the policy is."""

from tidegate.control.decision import Decision
from tidegate.control.measurement import Measurement
from tidegate.control.operator_tasks import shared, tasks_on


def give_way(measurement: Measurement, share: int | None) -> Decision | None:
    """A decision to release the cores beyond the share; None when there are no such cores."""
    if share is None or measurement.cores_asked <= share:
        return None
    return release_to(
        measurement, share, f"this pipeline's share of the application is {share} cores"
    )


def release_to(measurement: Measurement, cores: int, reason: str) -> Decision:
    """A decision to go down to these cores at once, with the tasks of the operators."""
    tasks = tasks_on(measurement, shared(measurement, cores))
    return Decision(reason=reason, cores=cores, tasks=tasks)
