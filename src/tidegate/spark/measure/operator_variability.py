"""How variable an operator's arrivals and service times are, by what its tasks reported."""

from tidegate.control.learning.sojourn import merged
from tidegate.control.learning.variability import ArrivalScv, BatchArrivalScv, Scv, ServiceScv
from tidegate.spark.measure.segment_batches import FinishedBatch


class OperatorVariability:
    """Follows one operator, batch by batch.

    The first reader of a source notes when its rows arrived. Rows come to any other operator by the
    batch. The blocks whose service is timed are the rows that a task got in one batch: a user's
    function never sees other blocks than it would see without being measured.
    """

    def __init__(self, operator: str, stamped: bool) -> None:
        self._operator = operator
        self._stamps = ArrivalScv() if stamped else None
        self._batches = BatchArrivalScv()
        self._blocks = ServiceScv()
        self._arrivals: Scv | None = None
        self._service: Scv | None = None

    @property
    def arrivals(self) -> Scv:
        """The scv of the gaps between its rows."""
        if self._arrivals is None:
            self._arrivals = (self._batches if self._stamps is None else self._stamps).scv
        return self._arrivals

    @property
    def service(self) -> Scv:
        """The scv of the time that a row takes."""
        if self._service is None:
            self._service = self._blocks.scv
        return self._service

    def add(self, batch: FinishedBatch) -> None:
        """One more finished batch."""
        reports = batch.result.of(self._operator)
        for report in reports:
            self._blocks.add(report.rows_in, report.busy_s)
        self._service = None
        if batch.fresh < 1.0:
            return  # rows from before the run did not arrive now
        noting = (*batch.result.in_front_of(self._operator), *reports)
        stamps = [report.stamps for report in noting if report.stamps is not None]
        if self._stamps is not None and stamps:
            whole = merged(stamps)
            every = max(report.sampled for report in noting)
            self._stamps.add(whole.slots, whole.counts, every, len(stamps))
        elif batch.since_s is not None:
            rows = sum(report.rows_in for report in reports)
            self._batches.add(float(rows), batch.began_s - batch.since_s)
        self._arrivals = None
