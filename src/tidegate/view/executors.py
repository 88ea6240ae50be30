"""What was special about the executors of a run: those that were slower, for instance."""

from collections.abc import Sequence

from tidegate.control.executors.executor_notes import ExecutorNotes
from tidegate.control.learning.executor_speeds import ExecutorSpeeds
from tidegate.control.record import Record


def executor_findings(records: Sequence[Record]) -> list[tuple[str, float]]:
    """What is said of executors, with the seconds for which each was so, longest first.

    It is found from the measurements again, as bottlenecks are.
    """
    speeds = ExecutorSpeeds()
    noter, found = ExecutorNotes(speeds), dict[str, float]()
    for record in records:
        tick = record.measurement
        if tick.stale is None:
            speeds.observe(tick)
            for note in noter.notes(tick):
                found[note] = found.get(note, 0.0) + tick.interval_s
    return sorted(found.items(), key=lambda pair: -pair[1])
