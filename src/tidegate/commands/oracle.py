"""The least core-seconds that would have held the target of a recorded run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tidegate.control.record import Record
from tidegate.errors import AskedWrongly

if TYPE_CHECKING:
    from tidegate.sim.microbatch.oracle import Oracle
    from tidegate.view.hindsight.hindsight import Best


def oracle_of(records: Sequence[Record]) -> "Oracle | None":
    """The oracle of a run; None if the run was too short to tell, or its options are unknown."""
    # Imported here because it loads the simulator.
    from tidegate.control.assembly import Assembly
    from tidegate.sim.microbatch.recorded import recorded_world

    document = records[0].assembly
    if document is None:
        return None
    assembly = Assembly.of(document)
    try:
        found = recorded_world(records).oracle(
            assembly.target, assembly.bounds, assembly.cores_per_executor
        )
    except AskedWrongly:
        return None
    return found if found.core_seconds > 0.0 else None


def best_of(records: Sequence[Record]) -> "Best | None":
    """The oracles of all runs of a checkpoint together; None if one of them cannot be told.

    An oracle holds one target within one pair of bounds, so it says nothing of a run whose target
    or bounds were changed while it ran.
    """
    from tidegate.control.replay import runs_of
    from tidegate.view.hindsight.hindsight import Best

    core_seconds, held_s, seconds, estimated = 0.0, 0.0, 0.0, False
    for run in runs_of(records):
        found = None if _changed(run) else oracle_of(run)
        if found is None:
            return None
        lasted_s = sum(record.measurement.interval_s for record in run)
        core_seconds += found.core_seconds
        held_s += found.within * lasted_s
        seconds += lasted_s
        estimated |= found.estimated
    return Best(core_seconds, held_s / max(seconds, 1e-9), estimated)


def _changed(run: Sequence[Record]) -> bool:
    """Whether the target or the bounds of a run were changed."""
    told: list[Any] = [
        (record.assembly["target"], record.assembly["bounds"])
        for record in run
        if record.assembly is not None
    ]
    return any(one != told[0] for one in told)
