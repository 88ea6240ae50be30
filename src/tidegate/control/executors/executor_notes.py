"""All that is said of executors in the record of a tick."""

from tidegate.control.all_notes import AllNotes
from tidegate.control.executors.clock_notes import ClockNotes
from tidegate.control.executors.missing_notes import MissingNotes
from tidegate.control.executors.unlike_notes import UnlikeNotes
from tidegate.control.learning.executor_speeds import ExecutorSpeeds


class ExecutorNotes(AllNotes):
    """Notes on executors that are missing, and on speeds and clocks that differ.

    Somebody else lets the speeds learn.
    """

    def __init__(self, speeds: ExecutorSpeeds) -> None:
        super().__init__(MissingNotes(), UnlikeNotes(speeds), ClockNotes())
