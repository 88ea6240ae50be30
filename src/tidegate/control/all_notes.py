"""The notes of several noters for one record."""

from typing import Protocol

from tidegate.control.measurement import Measurement


class Noter(Protocol):
    """Sees every tick, and says what a person should know about it."""

    def notes(self, measurement: Measurement) -> tuple[str, ...]:
        """The notes for the tick's record."""
        ...


class AllNotes:
    """Asks every noter in turn."""

    def __init__(self, *noters: Noter) -> None:
        self._noters = noters

    def notes(self, measurement: Measurement) -> tuple[str, ...]:
        """All their notes."""
        return tuple(note for noter in self._noters for note in noter.notes(measurement))
