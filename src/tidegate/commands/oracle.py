"""The least core-seconds that would have held the target of a recorded run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidegate.control.record import Record
from tidegate.errors import AskedWrongly

if TYPE_CHECKING:
    from tidegate.sim.microbatch.oracle import Oracle


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


def least_core_seconds(records: Sequence[Record]) -> float | None:
    """Its core-seconds alone; None for several runs in a row, of which each has its own."""
    if (
        sum(record.assembly is not None and record.tick <= records[0].tick for record in records)
        > 1
    ):
        return None
    found = oracle_of(records)
    return None if found is None else found.core_seconds
