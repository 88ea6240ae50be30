"""MST's offline training on Spark (III-A): measures a pipeline on numbers of cores.

flow = application_flow("grep", stretch=True)
calibration = calibrate(spark, flow, CalibrationPlan(counts=(1, 2, 3, 4, 6)))
calibration.measured.write("grep.json")
calibration.fit().predict([5, 8])
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from pyspark.sql import SparkSession

from tidegate.apps.capacity.calibration import CapacityCalibration, CountMeasured, Use
from tidegate.apps.capacity.full_flow import FullFlow
from tidegate.apps.capacity.measure_cores import BatchGuess, Throughput, long_enough, measure_cores
from tidegate.models.capacity.calibration_plan import CalibrationPlan
from tidegate.models.capacity.convergence import Convergence
from tidegate.models.capacity.fitted import validation_counts

_ANY = Convergence(close=1, latest=3, delta=100.0)
"""Meets any samples: a warm-up has only to find how many rows a batch has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationStep:
    """How far a calibration is."""

    cores: int
    use: Use | None
    """What the present measurement is for; None: it warms up."""
    repeat: int
    samples: tuple[float, ...]
    """Those of the present measurement so far, in rows per second."""
    done: int
    """Measurements that are over, with the warm-up."""
    total: int
    """Measurements in all; validation points are added when it is known where they are."""


def calibrate(
    spark: SparkSession,
    flow: FullFlow,
    plan: CalibrationPlan,
    *,
    on_step: Callable[[CalibrationStep], None] = lambda _: None,
    on_measured: Callable[[CountMeasured], None] = lambda _: None,
) -> CapacityCalibration:
    """Measure a pipeline on all numbers of cores of the plan; the master needs that many cores.

    Validation points follow where the two curves disagree, and then the checks. Ctrl-C keeps what
    was measured, unless that is nothing.
    """
    flow.check_cores(plan.largest)
    return _Calibrator(spark, flow, plan, on_step, on_measured).run()


class _Calibrator:
    """Measures one number of cores after the other."""

    def __init__(
        self,
        spark: SparkSession,
        flow: FullFlow,
        plan: CalibrationPlan,
        on_step: Callable[[CalibrationStep], None],
        on_measured: Callable[[CountMeasured], None],
    ) -> None:
        self._spark = spark
        self._flow = flow
        self._plan = plan
        self._on_step = on_step
        self._on_measured = on_measured
        self._runs: list[CountMeasured] = []
        self._last: tuple[int, Throughput] | None = None
        """The cores of the last measurement, and what it found."""
        self._done = 0
        self._total = 1 + plan.repeats * (len(plan.counts) + len(plan.checks))

    def run(self) -> CapacityCalibration:
        interrupted = False
        try:
            self._warm_up()
            self._measure(self._plan.counts, "fit")
            where = self._where_to_validate()
            self._total += self._plan.repeats * len(where)
            self._measure(where, "validation")
            self._measure(self._plan.checks, "check")
        except KeyboardInterrupt:
            if not self._runs:
                raise
            interrupted = True
        return CapacityCalibration(
            name=self._flow.name,
            plan=self._plan,
            runs=tuple(self._runs),
            stretched=self._flow.stretched,
            interrupted=interrupted,
        )

    def _warm_up(self) -> None:
        """A measurement that does not count, while the JVM compiles.

        It finds how many rows a batch has, and whether batches can be as short as they should be.
        """
        counts = sorted(self._plan.counts)
        plan = replace(self._plan, rule=_ANY, most_samples=_ANY.latest + 1)
        overhead_s = self._one(counts[len(counts) // 2], None, 1, plan).overhead_s
        batch_s = long_enough(self._plan.batch_s, overhead_s)
        self._plan = replace(self._plan, batch_s=batch_s)

    def _where_to_validate(self) -> list[int]:
        plan = self._plan
        most = plan.predicted
        if self._flow.most_tasks is not None:
            most = min(most, self._flow.most_tasks)
        return validation_counts(
            [(one.cores, one.rows_per_s) for one in self._runs],
            most=most,
            count=plan.validations,
            threshold=plan.threshold,
            without=plan.checks,
        )

    def _measure(self, counts: Sequence[int], use: Use) -> None:
        """All counts, as often as the plan says: up, then down, so that a drift cancels out."""
        for repeat in range(1, self._plan.repeats + 1):
            for cores in sorted(counts, reverse=repeat % 2 == 0):
                self._one(cores, use, repeat, self._plan)

    def _one(self, cores: int, use: Use | None, repeat: int, plan: CalibrationPlan) -> Throughput:
        def tell(samples: tuple[float, ...]) -> None:
            self._on_step(
                CalibrationStep(
                    cores=cores,
                    use=use,
                    repeat=repeat,
                    samples=samples,
                    done=self._done,
                    total=self._total,
                )
            )

        tell(())
        begun_s = time.monotonic()
        found = measure_cores(
            self._spark, self._flow, cores, plan, guess=self._guess(cores), on_samples=tell
        )
        self._last = (cores, found)
        self._done += 1
        if use is not None:
            seconds = time.monotonic() - begun_s
            measured = CountMeasured(
                cores=cores, use=use, repeat=repeat, seconds=seconds, **asdict(found)
            )
            self._runs.append(measured)
            self._on_measured(measured)
        return found

    def _guess(self, cores: int) -> BatchGuess | None:
        """The rows of a batch, if more cores do as much more work on rows as there are more."""
        if self._last is None:
            return None
        before, found = self._last
        work_s = max(found.batch_s - found.overhead_s, 0.1 * found.batch_s)
        left_s = max(self._plan.batch_s - found.overhead_s, 0.1 * self._plan.batch_s)
        rows = found.batch_rows * left_s / work_s * cores / before
        return BatchGuess(max(round(rows), 1), found.overhead_s)
