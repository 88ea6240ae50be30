"""The interface of every policy: a measurement and its constraints in, a decision out."""

from typing import Protocol

from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision
from tidegate.control.measurement import Measurement


class Policy(Protocol):
    """A policy is called once a tick, in time order.

    It may keep state, but it reads no clock and calls neither Spark nor the simulator. The same
    object therefore decides alike on both.
    """

    @property
    def name(self) -> str:
        """The name a person selects it by."""
        ...

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """What to change now, given what was measured and what is allowed."""
        ...
