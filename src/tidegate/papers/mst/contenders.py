"""Who competes in figures 7 to 10, and the runs of all of them over the applications' own loads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidegate.control.capacity.mst import TABLE_III
from tidegate.control.names import DEFAULT_POLICY, PRICED
from tidegate.errors import AskedWrongly
from tidegate.papers.figure import Asked
from tidegate.papers.mst.loads import LoadWeek, paired
from tidegate.sim.capacity.applications import ModelledApplication
from tidegate.sim.capacity.backtest import BacktestJob, Score, run_jobs

RHO = 0.95
"""The QoS target of the paper's evaluation."""
STRICT_RHO = 0.99
"""The QoS target with which our own policy has at least the QoS of the paper's policy 7."""
SEEDS = 5
"""Runs per application and policy, as in the paper."""
LATENCY_OPTION = {"latency": "no leaves out the controller of Spark, which takes minutes"}


@dataclass(frozen=True, slots=True)
class Contender:
    """A policy with its QoS target."""

    policy: str
    rho: float = RHO
    seeds: int = SEEDS

    @property
    def label(self) -> str:
        """Its name in results; our own policy is shown with its target."""
        return f"{self.policy}, rho {self.rho:g}" if self.policy == PRICED else self.policy


PAPERS = tuple(map(Contender, TABLE_III))
"""Policies 0 to 7."""
OURS = (Contender(PRICED), Contender(PRICED, STRICT_RHO))
ON_SPARK = Contender(DEFAULT_POLICY, seeds=1)
"""The controller that runs on Spark; a simulated week takes it two minutes, so it has one run."""

MODELLED = (
    "The capacity curves are modelled: table II prints the peaks, and figure 6 only draws the"
    " curves. They are easier to fit than the paper's, so policy 0 has a higher QoS here and every"
    " policy needs less reserve."
)
ONE_RUN = (
    "latency keeps a target of 10 s for the mean latency, on a simulated pipeline that gets cores"
    " after two minutes, as machines do. It has one run per application, and no rho."
)

Scores = Mapping[Contender, Sequence[Score]]


def numbered(*numbers: int) -> tuple[Contender, ...]:
    """The paper's policies with these numbers of table III."""
    return tuple(PAPERS[number] for number in numbers)


def with_ours(papers: Sequence[Contender], asked: Asked) -> tuple[Contender, ...]:
    """The paper's policies, ours beside them, and the controller of Spark unless it is left out."""
    text = asked.extra.get("latency", "no" if asked.quick else "yes")
    if text not in ("yes", "no"):
        raise AskedWrongly(f"latency={text}: give yes or no")
    return (*papers, *OURS, *([ON_SPARK] if text == "yes" else []))


def run_contenders(
    contenders: Sequence[Contender], weeks: Sequence[LoadWeek], asked: Asked
) -> dict[Contender, list[Score]]:
    """Every contender over every application under its own load; one run each if `quick`."""
    pairs = paired(weeks, quick=asked.quick)
    forecasts = {week.load.name: week.forecasts for week in weeks}
    for week in weeks:
        asked.progress.doing(f"forecasting {week.load.name}, {week.source}")
        week.forecasts.prepare([one.policy for one in contenders])
    found: dict[Contender, list[Score]] = {contender: [] for contender in contenders}
    jobs = [(one, job) for one in contenders for job in _jobs(one, pairs, quick=asked.quick)]
    scores = run_jobs([job for _, job in jobs], forecasts, progress=asked.progress)
    for (contender, _), score in zip(jobs, scores, strict=True):
        found[contender].append(score)
    return found


def _jobs(
    contender: Contender, pairs: Sequence[tuple[LoadWeek, ModelledApplication]], *, quick: bool
) -> list[BacktestJob]:
    return [
        BacktestJob(contender.policy, application, seed, contender.rho, week.load.name)
        for week, application in pairs
        for seed in range(1 if quick else contender.seeds)
    ]
