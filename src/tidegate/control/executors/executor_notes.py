"""All that is said of executors in the record of a tick."""

from tidegate.control.all_notes import AllNotes
from tidegate.control.executors.unlike_notes import UnlikeNotes
from tidegate.control.learning.executor_speeds import ExecutorSpeeds


class ExecutorNotes(AllNotes):
    """Notes on speeds, which somebody else lets learn."""

    def __init__(self, speeds: ExecutorSpeeds) -> None:
        super().__init__(UnlikeNotes(speeds))
