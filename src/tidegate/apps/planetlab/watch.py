"""Watches a run tick by tick: how old its rows and results are, and what CPU it uses."""

from dataclasses import dataclass, field

from tidegate.apps.own_cpu import own_cpu_s
from tidegate.apps.planetlab.ages import ResultAges
from tidegate.control.learning.sojourn import BatchStamps, merged
from tidegate.control.record import Record
from tidegate.spark.measure.running_batch import kept_stamps
from tidegate.spark.run import Run


@dataclass(slots=True)
class Watch:
    """A watcher of a control loop. What it counts is bounded, however long the run."""

    run: Run
    warm_s: float
    """Seconds after the first tick that are not judged."""
    ages: ResultAges = field(default_factory=ResultAges)
    judged_from_s: float | None = None
    _first_cpu: tuple[float, float] | None = None
    """When judging began, and the CPU seconds then."""
    _last_cpu: tuple[float, float] | None = None

    def __call__(self, record: Record) -> None:
        """Take in what a tick recorded."""
        at_s = record.measurement.at_s
        if self.judged_from_s is None:
            self.judged_from_s = at_s + self.warm_s
        ended_s = {
            batch.batch_id: batch.ended_s
            for segment in record.measurement.segments
            for batch in segment.batches
        }
        for result in self.run.results() if ended_s else ():
            end_s = ended_s.get(result.plan.batch_id)
            if end_s is not None:
                stamps = merged(kept_stamps(result.reports, frozenset()))
                batch = BatchStamps(stamps, round(end_s * 1e6))
                self.ages.add(batch, judged=end_s >= self.judged_from_s)
        cpu_s = own_cpu_s()
        if cpu_s is not None and at_s >= self.judged_from_s:
            self._first_cpu = self._first_cpu or (at_s, cpu_s)
            self._last_cpu = at_s, cpu_s

    @property
    def cpu_percent(self) -> float | None:
        """CPU use of the application in per cent of one core; None where it is not told."""
        if self._first_cpu is None or self._last_cpu is None:
            return None
        spent_s = self._last_cpu[0] - self._first_cpu[0]
        return 100.0 * (self._last_cpu[1] - self._first_cpu[1]) / spent_s if spent_s > 0.0 else None
