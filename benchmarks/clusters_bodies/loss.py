"""Losing a host in the middle of a run, and how long that is felt."""

import threading
from collections.abc import Callable
from itertools import pairwise

from tidegate.control.record import Record

AWAY_S = 30.0
"""How long the worker of the lost host is gone."""

Back = Callable[[], None]


class Loss:
    """Loses a host at a time of the run, and brings it back."""

    def __init__(self, after_s: float, lose: Callable[[], Back]) -> None:
        """`lose` kills a host with executors, and returns what brings it back."""
        self._after_s, self._lose = after_s, lose
        self._began_s: float | None = None
        self.at_s: float | None = None
        """When the host was lost, by the clock of the records."""
        self.failure: BaseException | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="loses-a-host", daemon=True)

    def watch(self, record: Record) -> None:
        """Look at the time of every record."""
        now_s = record.measurement.at_s
        if self._began_s is None and record.measurement.arrival_rate > 0.0:
            self._began_s = now_s
        if self._began_s is None or self.at_s is not None or now_s < self._began_s + self._after_s:
            return
        self.at_s = now_s
        self._thread.start()  # ticks go on meanwhile

    def end(self) -> None:
        """Bring nothing back any more."""
        self._over.set()
        if self.at_s is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            back = self._lose()
            if not self._over.wait(AWAY_S):
                back()
        except BaseException as error:  # told by the body, in whose thread it belongs
            self.failure = error


def held_again_s(records: list[Record], lost_s: float | None, target_s: float) -> float | None:
    """How long after the loss the target was held for good; None if there was no loss."""
    if lost_s is None:
        return None
    late = [
        record.measurement.at_s
        for record in records
        if record.measurement.at_s >= lost_s
        and record.measurement.latency is not None
        and record.measurement.latency.mean_s > target_s
    ]
    return round(max(late) - lost_s, 1) if late else 0.0


def longest_gap_s(records: list[Record]) -> float:
    """The longest time between the ends of two micro-batches that followed each other."""
    ends = sorted(
        batch.ended_s
        for record in records
        for segment in record.measurement.segments
        for batch in segment.batches
    )
    return round(max((after - before for before, after in pairwise(ends)), default=0.0), 2)
