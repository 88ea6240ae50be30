"""Cores that are another pipeline's share are given up at once, whatever the policy is."""

from tidegate.control.decision import Decision
from tidegate.control.measurement import Measurement
from tidegate.control.operator_tasks import shared, tasks_on


def give_way(measurement: Measurement, share: int | None) -> Decision | None:
    """Gives up the cores beyond the share; None when the pipeline holds no more than that."""
    if share is None or measurement.cores_asked <= share:
        return None
    return Decision(
        reason=f"{share} cores are its share of the application's",
        cores=share,
        tasks=tasks_on(measurement, shared(measurement, share)),
    )
