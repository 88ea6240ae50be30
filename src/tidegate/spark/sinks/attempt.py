"""One try to write the output of a micro-batch to a sink, with all that makes it recognisable."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Attempt:
    """A try to write a batch; every try of the same batch has the same names."""

    pipeline: str
    sink: str
    query: str
    """The id that Spark keeps for the segment's query in the checkpoint. A pipeline that begins
    again with a new checkpoint counts its batches from zero, and this tells them apart."""
    batch_id: int
    again: bool = False
    """Whether an earlier try may have written something: only then one has to look for it."""
    check: Callable[[], None] = lambda: None
    """Raises if another driver has the checkpoint meanwhile."""

    @property
    def mark(self) -> str:
        """The query's id, short enough for names of files and for headers."""
        return self.query.replace("-", "")[:12]
