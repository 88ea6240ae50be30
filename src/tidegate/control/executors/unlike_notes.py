"""Names the executors that are slower or faster than the others, and what follows from it."""

from tidegate.control.learning.executor_speeds import (
    ExecutorSpeeds,
    executor_words,
    times_words,
)
from tidegate.control.measurement import Measurement

_NAMED = 3
"""So many executors are named, the slowest first; the others are counted."""


class UnlikeNotes:
    """Returns the notes for the record of a tick, from speeds that others let learn."""

    def __init__(self, speeds: ExecutorSpeeds) -> None:
        self._speeds = speeds

    def notes(self, measurement: Measurement) -> tuple[str, ...]:
        """A sentence for each executor that differs and has tasks; empty where all are alike."""
        unlike = self._speeds.unlike
        there = {name for one in measurement.operators for name in one.executors}
        found = sorted((speed, name) for name, speed in unlike.items() if name in there)
        notes = tuple(_note(name, speed) for speed, name in found[:_NAMED])
        more = len(found) - _NAMED
        return (*notes, f"{more} more executors differ in speed") if more > 0 else notes


def _note(name: str, speed: float) -> str:
    gets = "fewer" if speed < 1.0 else "more"
    return (
        f"{executor_words(name)} is {times_words(speed)}: its tasks get {gets} shards, and {gets}"
        " rows of maps with tasks of their own"
    )
