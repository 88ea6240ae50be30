"""A pipeline on Spark offered more rows than it can carry, with and without shedding.

What is kept is judged against what the target allows. That needs a batch's fixed cost, which comes
from a calm run of its own right before the runs of each target, because machines drift. Taken from
the run that is judged it would follow from its latency, and whatever shedding costs would excuse
itself.
"""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from tidegate.apps.overload import TASKS, WAIT_S, Overload, run_overload, warm_up
from tidegate.benching import Aim, Bench, Options, at_least, at_most
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.spark.session import session

SHEDDING, STAGED, NONE = "shedding", "shedding in a Python stage", "none"
"""What was done about the overload."""
_CALM_S, _STAGED_S, _UNSHED_S = 25.0, 35.0, 40.0
"""The length of the runs that have no target of their own."""


@dataclass(frozen=True, slots=True)
class Case:
    """One run, and what a batch cost besides its rows in the calm run before it."""

    remedy: str
    found: Overload
    fixed_s: float

    @property
    def allowed_rate(self) -> float:
        """tau(T): the most rows per second within the target."""
        cost = BatchCost(fixed_s=self.fixed_s, work_s=WAIT_S)
        return cost.throughput(TASKS, self.found.target_s)

    @property
    def kept_over_allowed(self) -> float:
        """The rate that was kept over the one that the target allows."""
        return self.found.kept_rate / self.allowed_rate if self.allowed_rate > 0.0 else 0.0

    @property
    def off_target(self) -> float:
        """How far the mean latency is from the target, as a share of it."""
        return abs(self.found.mean_latency_s / self.found.target_s - 1.0)

    def row(self) -> dict[str, Any]:
        """The figures, for a table or a JSON document."""
        found = self.found
        return {
            "remedy": self.remedy,
            "target_s": found.target_s,
            "offered_over_capacity": found.factor,
            "mean_latency_s": round(found.mean_latency_s, 3),
            "last_latency_s": round(float(found.latency_s[-1]), 3),
            "kept_rate": round(found.kept_rate, 1),
            "sustainable_rate": round(self.allowed_rate, 1),
            "fixed_s": round(found.fixed_s, 3),
            "offered": found.counts.offered,
            "kept": found.counts.kept,
            "shed": found.counts.shed,
            "exact": found.exact,
        }


def spark_body(options: Options) -> Bench:
    """Targets of 1, 2 and 3 s at 1.2 to 3 times the capacity, and one run that sheds nothing."""
    factors = (1.5,) if options.quick else (1.2, 2.0, 3.0)
    # The tightest last: the JVM goes on getting faster for minutes, and what a batch costs besides
    # its rows is a third of a second's target.
    targets_s = (2.0,) if options.quick else (3.0, 2.0, 1.0)
    spark = session(f"local[{TASKS}]", "bench-shed")
    options.progress.doing("warming up")
    warm_up(spark)
    total_s = sum(_CALM_S + len(factors) * _shed_s(target_s) for target_s in targets_s)
    total_s += _UNSHED_S + (0.0 if options.quick else _STAGED_S)
    options.progress.expect(total_s, takes_s=total_s)
    cases: list[Case] = []
    for target_s in targets_s:
        options.progress.step("what a batch costs besides its rows, 0.4 times capacity", _CALM_S)
        calm = run_overload(spark, target_s=2.0, factor=0.4, seconds=_CALM_S, shed=False)
        cases.append(Case(NONE, calm, calm.fixed_s))
        for factor in factors:
            cases.append(_shed(spark, target_s, factor, calm.fixed_s, options))
    if not options.quick:
        options.progress.step("target 1 s at 2 times capacity, rows not told apart", _STAGED_S)
        staged = run_overload(
            spark, target_s=1.0, factor=2.0, seconds=_STAGED_S, shed=True, told_apart=False
        )
        cases.append(Case(STAGED, staged, calm.fixed_s))
    options.progress.step("without shedding at 1.5 times capacity", _UNSHED_S)
    unshed = run_overload(spark, target_s=2.0, factor=1.5, seconds=_UNSHED_S, shed=False)
    cases.append(Case(NONE, unshed, calm.fixed_s))
    spark.stop()
    return Bench("shed", [case.row() for case in cases], _aims(cases, unshed))


def _shed_s(target_s: float) -> float:
    """How long a run takes that sheds."""
    return 25.0 + 10.0 * target_s


def _shed(
    spark: SparkSession, target_s: float, factor: float, fixed_s: float, options: Options
) -> Case:
    seconds = _shed_s(target_s)
    options.progress.step(f"target {target_s:g} s at {factor:g} times capacity", seconds)
    found = run_overload(spark, target_s=target_s, factor=factor, seconds=seconds, shed=True)
    case = Case(SHEDDING, found, fixed_s)
    options.say(
        f"target {target_s:g} s at {factor:g} times capacity: mean latency"
        f" {found.mean_latency_s:.2f} s, {found.kept_rate:.0f} rows/s kept of"
        f" {case.allowed_rate:.0f} that the target allows"
    )
    return case


def _aims(cases: list[Case], unshed: Overload) -> list[Aim]:
    shed = [case for case in cases if case.remedy == SHEDDING]
    exact = sum(case.found.exact for case in cases)
    return [
        at_most(
            "mean latency off its target, worst run", max(case.off_target for case in shed), 0.10
        ),
        at_least(
            "kept over what the target allows, worst run",
            min(case.kept_over_allowed for case in shed),
            0.90,
        ),
        Aim("runs whose rows are counted exactly", exact, f"= {len(cases)}", exact == len(cases)),
        at_least("latency's growth without shedding", unshed.growth, 1.5),
    ]
