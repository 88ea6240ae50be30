"""The one interface of everything that decides: measurement in, decision out."""

from typing import Protocol

from tidegate.control.decision import Decision
from tidegate.control.measurement import Measurement


class Policy(Protocol):
    """Called once per tick, in time order; may remember, but reads no clock and no body.

    The same object therefore decides alike in the simulator and on Spark.
    """

    @property
    def name(self) -> str:
        """The name a person selects it by."""
        ...

    def decide(self, measurement: Measurement) -> Decision:
        """Learn from the measurement and say what to change now."""
        ...
