"""A driver's lease on a checkpoint, as the transactions of its segments see it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tidegate.spark.owner.epochs import Epoch, Epochs, Fenced
from tidegate.spark.state.files import Missing


@dataclass(frozen=True, slots=True)
class Lease:
    """The epoch in which a segment commits, and the epochs before it."""

    epochs: Epochs
    epoch: Epoch

    def check(self) -> None:
        """Raise `Fenced` if another driver has taken over."""
        self.epochs.check(self.epoch)

    def beat(self, number: int, *, released: bool = False) -> None:
        """Leave a sign of life, or the sign that the lease is given up."""
        self.epochs.beat(self.epoch, number, released=released)

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """If the block fails because another driver has taken over, say that and not how.

        What a driver reads while another one moves on looks damaged to it.
        """
        try:
            yield
        except Fenced:
            raise
        except Exception as error:
            try:
                self.check()
            except (OSError, Missing) as unanswered:
                error.add_note(f"it could not be found out who has the checkpoint: {unanswered}")
            raise

    def earlier_marks(self) -> Iterable[str]:
        """The marks of earlier owners, newest first; those of long ago are forgotten."""
        number = self.epoch.number - 1
        while number > 0 and (earlier := self.epochs.read(number)) is not None:
            yield earlier.mark
            number -= 1
