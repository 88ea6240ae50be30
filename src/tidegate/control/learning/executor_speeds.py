"""How fast each executor is, beside the others: learned from the rates at which its tasks work.

Machines of a cluster are rarely alike: some are older, some are shared with other work, and one may
be ill. Every operator compares the executors that ran its tasks, because its rows cost the same on
all of them. An executor counts as alike (speed 1) until there is enough evidence that it differs,
and its speed then stays as it is until it has clearly changed. So chance moves no shards. Evidence
is the more, the longer tasks worked and the larger the difference is: where a slow node makes
batches grow, there will not be many of them to learn from.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidegate.control.measurement import Measurement

_UNLIKE = 1.5
"""An executor that is so many times as slow, or as fast, as the usual one differs from it."""
_ALIKE = 1.2
"""Below this ratio it does no longer, and by less its speed is not corrected."""
_EVIDENCE = 6.0
"""For so many short ticks in a row it must have differed, by a little more than that ratio."""
_LONG_S = 3.0
"""A tick counts by the seconds of its tasks, and at most so much."""
_FAR = 3.0
"""A large difference counts at most so much more than a small one."""
_ALIKE_TICKS = 10
_FADING = 0.7
"""The weight that earlier ticks keep."""
_FORGOTTEN = 60
"""An executor without rows for so many ticks is given another chance: it may have recovered."""


@dataclass(slots=True)
class _Pace:
    tick: int
    """The last tick in which it had rows."""
    speed: float = 1.0
    """The speed that is reckoned with."""
    log: float | None = None
    """The logarithm of its rate over the usual one, averaged over ticks; None: not known."""
    evidence: float = 0.0
    """That it differs, or how many ticks in a row it has been alike again."""

    def observe(self, log: float, task_s: float, tick: int) -> None:
        """Learn from a tick in which a task worked so many seconds on average."""
        self.tick = tick
        self.log = log if self.log is None else self.log + (1.0 - _FADING) * (log - self.log)
        if self.speed == 1.0:
            self._alike(math.exp(abs(self.log)), task_s)
        else:
            self._unlike(self.log)

    def _alike(self, ratio: float, task_s: float) -> None:
        if ratio < _UNLIKE:
            self.evidence = 0.0
            return
        self.evidence += min(max(task_s, 1.0), _LONG_S) * min(ratio / _UNLIKE, _FAR)
        if self.evidence >= _EVIDENCE and self.log is not None:
            self.speed, self.evidence = math.exp(self.log), 0.0

    def _unlike(self, log: float) -> None:
        self.evidence = self.evidence + 1.0 if abs(log) <= math.log(_ALIKE) else 0.0
        if self.evidence >= _ALIKE_TICKS:
            self.speed, self.evidence = 1.0, 0.0
        elif not self.evidence and abs(log - math.log(self.speed)) > math.log(_ALIKE):
            self.speed = math.exp(log)


class ExecutorSpeeds:
    """The speeds of one pipeline's executors; 1 is the usual one."""

    def __init__(self) -> None:
        self._paces: dict[str, _Pace] = {}
        self._tick = 0

    def observe(self, measurement: Measurement) -> None:
        """Learn from a tick."""
        logs: dict[str, float] = {}
        weights: dict[str, float] = {}
        longest_s = 0.0
        for one in measurement.operators:
            known = len(one.task_rates) == len(one.executors) == one.tasks
            if not known or one.rows <= 0:
                continue
            pairs = zip(one.executors, one.task_rates, strict=True)
            rates = {executor: rate for executor, rate in pairs if rate > 0.0}
            if len(rates) < 2:
                continue
            # Half of them are at least as fast, so two are measured by the faster one.
            usual = sorted(rates.values())[len(rates) // 2]
            weight = max(one.busy_s, 1e-9)
            longest_s = max(longest_s, one.busy_s / one.tasks)
            for executor, rate in rates.items():
                logs[executor] = logs.get(executor, 0.0) + weight * math.log(rate / usual)
                weights[executor] = weights.get(executor, 0.0) + weight
        if not logs:
            return
        self._tick += 1
        for executor, total in logs.items():
            pace = self._paces.get(executor)
            if pace is None:  # its first tasks were cold: code is loaded and compiled
                self._paces[executor] = _Pace(self._tick)
            else:
                pace.observe(total / weights[executor], longest_s, self._tick)
        for executor in [e for e, p in self._paces.items() if self._tick - p.tick > _FORGOTTEN]:
            del self._paces[executor]

    def of(self, executors: Sequence[str]) -> tuple[float, ...]:
        """The speeds of these executors; those that are not known are usual."""
        paces = (self._paces.get(executor) for executor in executors)
        return tuple(1.0 if pace is None else pace.speed for pace in paces)

    @property
    def unlike(self) -> Mapping[str, float]:
        """The executors that are not as fast as the usual one, with their speeds."""
        return {e: pace.speed for e, pace in self._paces.items() if pace.speed != 1.0}


def executor_words(name: str) -> str:
    """An executor for a person, by its host and the end of its working directory.

    That end is Spark's number of the executor on most clusters, and the container's name on YARN.
    """
    host, _, directory = name.partition(":")
    end = directory.rstrip("/").rpartition("/")[2]
    return f"executor {end} on {host}" if end else name


def times_words(speed: float) -> str:
    """A speed for a person, in words that do not change with every tick."""
    if speed > 1.0:
        return f"about {_rounded(speed)} times as fast as the others"
    return f"about {_rounded(1.0 / speed)} times as slow as the others"


def _rounded(times: float) -> str:
    return f"{round(2.0 * times) / 2.0:g}" if times < 5.0 else f"{times:.0f}"
