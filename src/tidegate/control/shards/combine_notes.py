"""Says when rows of an operator begin to be combined before they are sent to its tasks, or end.

The sentence is in one record; how many rows are left is in the measurement of every tick.
"""

from tidegate.control.measurement import Measurement


class CombineNotes:
    """Sees every tick in time order, and returns the notes for its record."""

    def __init__(self) -> None:
        self._combined: set[str] = set()

    def notes(self, measurement: Measurement) -> tuple[str, ...]:
        """One note for each operator where it begins or ends in this tick."""
        found = []
        for operator in measurement.operators:
            name = operator.name
            if operator.combined_rows is not None and name not in self._combined:
                self._combined.add(name)
                found.append(
                    f"rows of '{name}' are now combined before they are sent to its tasks: of "
                    f"{operator.rows:,} rows {operator.combined_rows:,} are left"
                )
            elif operator.combined_rows is None and operator.rows and name in self._combined:
                self._combined.discard(name)
                found.append(
                    f"rows of '{name}' are no longer combined before they are sent to its tasks: "
                    "too many were left"
                )
        return tuple(found)
