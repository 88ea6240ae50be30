"""Says that executors do not come, for as long as they do not."""

from tidegate.control.measurement import Measurement
from tidegate.control.overdue import FULL


class MissingNotes:
    """Returns the note for the record of a tick."""

    def notes(self, measurement: Measurement) -> tuple[str, ...]:
        """One sentence, without the time that passes; the view shows it once."""
        found = measurement.overdue
        if found is None:
            return ()
        return (f"{found.missing} of {found.requested} requested executors do not come: {FULL}",)
