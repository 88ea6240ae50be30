"""The one interface of everything that decides: a measurement in, a decision out."""

from typing import Protocol

from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision
from tidegate.control.measurement import Measurement


class Policy(Protocol):
    """Called once a tick, in time order. It may remember, but it reads no clock and no body.

    The same object therefore decides alike in the simulator and on Spark.
    """

    @property
    def name(self) -> str:
        """The name a person selects it by."""
        ...

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """What to change now, given what is and what is allowed."""
        ...
