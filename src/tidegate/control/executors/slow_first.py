"""A policy around another one that gives back slow executors before others.

By themselves the newest ones go first, because the oldest have warm caches. A slow one has few
shards, and costs as much as the others.
"""

from dataclasses import replace

from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision
from tidegate.control.learning.executor_speeds import ExecutorSpeeds, executor_words
from tidegate.control.measurement import Measurement
from tidegate.control.policy import Policy
from tidegate.control.wrapper import Wrapper


class SlowFirst(Wrapper):
    """The inner policy; where it releases cores, the slow executors are named."""

    def __init__(self, inner: Policy, speeds: ExecutorSpeeds) -> None:
        super().__init__(inner)
        self._speeds = speeds

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """The inner policy's decision, with the executors that are to go first."""
        decision = self.inner.decide(measurement, constraints)
        if decision.cores is None or decision.cores >= measurement.cores_asked:
            return decision
        there = {name for one in measurement.operators for name in one.executors}
        slow = sorted(
            (speed, name)
            for name, speed in self._speeds.unlike.items()
            if speed < 1.0 and name in there
        )
        if not slow:
            return decision
        names = tuple(name for _, name in slow)
        said = f"{executor_words(names[0])}, which is the slowest, goes first"
        return replace(decision, reason=f"{decision.reason}; {said}", release_first=names)
