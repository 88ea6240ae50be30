"""Scale-outs of one segment in a row: batches on more cores against batches before the first.

Loads change meanwhile, so durations are not compared as they are. The model of what a batch costs,
as it was before the first scale-out, says how long the same rows would have taken then, and how
long they should take on the cores of now. More cores have an effect if batches gain at least a part
of what the model expects.
"""

import statistics
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tidegate.control.effect.judged_batch import JudgedBatch
from tidegate.models.microbatch.batch_cost import BatchCost

COMPARED = 5
"""So many of the newest batches are compared."""
_LEAST_MORE = 1.15
"""So many times as many tasks as before should make a difference that can be seen."""
FEWEST = 3
"""Fewer batches on more cores say nothing yet."""
_PART = 0.25
"""An effect is at least this part of the gain that the model expects..."""
_LEAST = 0.05
"""...and at least this share of the duration: less cannot be told from noise."""
_FAR = 2.0
"""Batches with so many times as many rows as before are told by the model less surely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """A segment before its first scale-out."""

    batches: tuple[JudgedBatch, ...]
    """Its last batches, all on the same number of tasks."""
    cores: int
    """Cores of the whole pipeline."""
    cost: BatchCost
    """What a batch costs, as it was learned by then."""
    imbalance_on: Callable[[int], float]
    """The imbalance to expect on so many tasks, as it was learned by then."""

    @property
    def tasks(self) -> int:
        """The tasks of these batches."""
        return self.batches[-1].tasks

    @property
    def imbalance(self) -> float:
        """delta of these batches."""
        return statistics.median(batch.imbalance for batch in self.batches)

    @property
    def off(self) -> float:
        """Measured over modelled duration of these batches, by which the model is corrected."""
        return statistics.median(
            batch.duration_s / max(self._modelled_s(batch.rows), 1e-9) for batch in self.batches
        )

    def _modelled_s(self, rows: int) -> float:
        return self.cost.duration_s(rows, self.tasks, self.imbalance)

    def unchanged_s(self, batch: JudgedBatch) -> float:
        """How long the rows of a batch would have taken before."""
        return self.off * self._modelled_s(batch.rows)

    def expected_s(self, batch: JudgedBatch) -> float:
        """How long the model expects them to take on the tasks that they had."""
        delta = max(self.imbalance_on(batch.tasks), 1.0)
        return self.off * self.cost.duration_s(batch.rows, batch.tasks, delta)


@dataclass(frozen=True, slots=True)
class BeforeAndAfter:
    """What more cores did to the duration of batches."""

    ratio: float
    """Duration over what the same rows would have taken before."""
    expected: float
    """The same ratio as the model expects it."""
    growth: float = 1.0
    """Rows of a batch over what batches had before."""
    more: float = 2.0
    """Tasks of the newest batch over those before."""

    @property
    def has_effect(self) -> bool:
        """Whether batches gained enough to call it an effect."""
        return self.ratio <= 1.0 - max(_PART * (1.0 - self.expected), _LEAST)

    @property
    def has_none(self) -> bool:
        """Whether it is clear that they did not.

        With many more rows than before, the model may be off by some. Then it is clear only if even
        twice as many tasks left the durations as they were.
        """
        if self.growth <= _FAR:
            return not self.has_effect
        return self.ratio > (0.9 if self.more >= _FAR else 1.0) and not self.has_effect


class ScaleOutSeries:
    """The batches of a segment since its first scale-out that is not judged yet."""

    def __init__(self, before: Before) -> None:
        self.before = before
        self._after: deque[JudgedBatch] = deque(maxlen=COMPARED)
        self._used: set[int] = set()
        self._late = 0

    def add(self, batch: JudgedBatch, *, late: bool) -> None:
        """Add a batch that ended in a tick that missed the target, or did not."""
        if batch.tasks <= self.before.tasks:
            return
        self._used.add(batch.tasks)
        if batch.fit:
            self._after.append(batch)
            self._late = self._late + 1 if late else 0

    @property
    def after(self) -> Sequence[JudgedBatch]:
        """The newest batches on more tasks that tell a speed."""
        return tuple(self._after)

    @property
    def times(self) -> int:
        """Scale-outs whose cores were in use by a batch."""
        return len(self._used)

    @property
    def late(self) -> bool:
        """Whether the last batches all missed the target, so that more cores were needed."""
        return self._late >= FEWEST

    def compared(self) -> BeforeAndAfter | None:
        """Now against before; None while too few batches, or none on the newest cores, tell."""
        if len(self._after) < FEWEST:
            return None
        newest = self._after[-1].tasks
        if newest < max(self._used) or newest < _LEAST_MORE * self.before.tasks:
            return None
        unchanged = [max(self.before.unchanged_s(one), 1e-9) for one in self._after]
        pairs = list(zip(self._after, unchanged, strict=True))
        return BeforeAndAfter(
            ratio=statistics.median(one.duration_s / then_s for one, then_s in pairs),
            expected=statistics.median(
                self.before.expected_s(one) / then_s for one, then_s in pairs
            ),
            growth=_rows(self._after) / _rows(self.before.batches),
            more=newest / self.before.tasks,
        )


def _rows(batches: Iterable[JudgedBatch]) -> float:
    return statistics.median(batch.rows for batch in batches)
