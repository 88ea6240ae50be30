"""Decides when the rows of an operator are combined before they are sent to its tasks.

Combining is one more step for every row, in the tasks that read them. It pays where it leaves few
rows: with far more rows than keys, or with a key that has a large share of the rows and so bounds
its task. Costs are told in rows: 1 is what a row takes that is shuffled and folded as it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

FRONT = 0.5
"""What it takes to combine a row where it is read."""
BEHIND = 1.2
"""What it takes to shuffle and fold a combined row, which has a few more columns."""
FIXED_ROWS = 40_000
"""What a stage more takes for no row: starting its tasks and handing them over."""
_GAIN = 0.1
"""It begins when this share of the time is gained, and ends when as much is lost."""
_BATCHES = 2
"""So many batches in a row must say so."""


def gain(rows: Sequence[int], left: Sequence[int]) -> float:
    """The share of the time of an operator's stage that combining saves; negative: it costs more.

    `rows` are the rows of each task, and `left` the combined ones. A stage takes as long as its
    fullest task. Rows are combined where they are read, which divides them evenly.
    """
    if not rows or not sum(rows):
        return 0.0
    before = float(max(rows))
    after = FRONT * sum(rows) / len(rows) + BEHIND * max(left) + FIXED_ROWS
    return (before - after) / before


@dataclass(slots=True)
class CombineChoice:
    """Follows one operator, batch by batch."""

    combines: bool = False
    """What is wished for from the next batch on."""
    _in_a_row: int = 0

    def observe(self, rows: Sequence[int], left: Sequence[int]) -> bool:
        """What is wished for after a batch with these rows per task, and those left of them.

        Small batches say nothing: they are cheap either way, and a load that falls rises again.
        """
        if sum(rows) < FIXED_ROWS:
            return self.combines
        found = gain(rows, left)
        turns = found < -_GAIN if self.combines else found > _GAIN
        self._in_a_row = self._in_a_row + 1 if turns else 0
        if self._in_a_row >= _BATCHES:
            self.combines, self._in_a_row = not self.combines, 0
        return self.combines
