"""Runs of DRS's applications on Spark, cut into a segment per operator and stretched.

In Storm the operators of a topology work side by side. So each operator is a segment of its own
here, and its tasks are the paper's executors.
"""

import dataclasses
from contextlib import AbstractContextManager

from pyspark.sql import SparkSession

from tidegate.apps.application import Application, Settings
from tidegate.apps.run_application import ApplicationRun, run_application
from tidegate.papers.application_runs import run_to_its_end
from tidegate.papers.sessions import spark_on
from tidegate.workload.parse import parse_profile
from tidegate.workload.profile import Profile, steps

K_MAX = 22
PACE = 1.5
"""Operators are this much faster than the paper's load needs. In Storm a free executor takes the
next frame. A micro-batch deals its frames out to its tasks beforehand and ends with the slowest of
them. Frames differ, so of ten tasks with three frames each it takes 1.5 times the mean, and in one
batch of twenty 1.9 times; at the paper's utilisation of 0.81 that would be more than there is."""
SLOW_S = 10.0
"""Seconds at the start with a quarter of the load, until Spark and Python are warm: what piles up
meanwhile would be worked off slowly, because the cores are busy for most of the time."""
_SLOW = 0.25
_WARM_UP_S = 6.0


def papers_session(paper: str) -> AbstractContextManager[SparkSession]:
    """A session with a core for each of DRS's 22, and two for the driver's own work."""
    # A task that fails because the machine is busy is tried again, as on a cluster.
    return spark_on(f"local[{K_MAX + 2},4]", f"tidegate paper {paper}")


def gently(profile: Profile, seconds: float, slow_s: float = SLOW_S) -> Profile:
    """The profile, second by second, after a start with a quarter of its mean."""
    mean = profile.count(round(seconds * 1000)) / seconds
    first = int(slow_s)
    later = [(float(at), profile.rate(at + 0.5)) for at in range(first, int(seconds) + 1)]
    return steps([(0.0, _SLOW * mean), *later])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to run."""

    app: Application
    split: tuple[int, ...]
    """Tasks of each operator at the start."""
    seconds: float
    rate: Profile | None = None
    """None: the application's own."""
    cut: bool = True
    pace: float = PACE
    policy: str = "drs-fixed"
    cores: int | tuple[int, int] = K_MAX
    target_s: float = 60.0
    acts: bool = False
    """Whether the policy changes anything; if not, it recommends only: T_ra is infinite."""
    between_s: float | None = None
    """T_ra, where there is one; as in the paper it counts from the start as well."""


def warm_up(spark: SparkSession, app: Application) -> None:
    """Run an application for some seconds, so that the first judged run finds Spark warm."""
    run(
        spark,
        Wanted(
            app=app,
            split=(4,) * len(app.operators),
            seconds=_WARM_UP_S,
            rate=parse_profile("constant:4"),
        ),
    )


def run(spark: SparkSession, wanted: Wanted) -> ApplicationRun:
    """Run an application to its end; the answers of each run are verified."""
    app = wanted.app
    profile = wanted.rate or gently(parse_profile(app.rate), wanted.seconds)
    settings = Settings(
        rate=profile,
        seconds=wanted.seconds,
        stretch=True,
        pace=wanted.pace,
        cut=wanted.cut,
    )
    between = None if wanted.between_s is None else f"{1000 * wanted.between_s:.0f} ms"
    ran = run_application(
        spark,
        app,
        settings,
        target=f"{1000 * wanted.target_s:.0f} ms",
        cores=wanted.cores,
        policy=wanted.policy,
        split=dict(zip(app.operators, wanted.split, strict=True)),
        between_changes=between,
        first_change=between,
        dry_run=not wanted.acts,
    )
    return run_to_its_end(ran)
