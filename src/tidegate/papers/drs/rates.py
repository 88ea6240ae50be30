"""Figure 9: cores follow the rate of the video, 6, 12 and 18 frames per second.

Two lines are DRS's own policy with windows of 6 and 3 minutes; a third is Tidegate's, which
forecasts the load and decides every second. T_max and T_min are the paper's, 1000 and 450 ms, times
what three segments need more: a row passes through three micro-batches, each with a fixed cost.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from tidegate.apps.catalogue import application
from tidegate.apps.run_application import ApplicationRun
from tidegate.benching import Aim, at_least, at_most
from tidegate.papers.application_runs import wrong_answers
from tidegate.papers.drs.runs import K_MAX, Wanted, papers_session, run, warm_up
from tidegate.papers.drs.timeline import COST_OF_A_CHANGE, Timeline
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.papers.measured import after
from tidegate.view.pages.paper import Curve, Picture
from tidegate.workload.profile import steps

START = (3, 5, 1)
"""The paper's first split."""
T_MAX_S = 6.0
"""The paper's 1000 ms, times 6."""
T_MIN_SHARE = 0.45
PACE = 3.0
"""Operators are this much faster than the paper's load needs, so that 22 cores hold T_max at 18
frames per second, with the fixed cost of three micro-batches."""
BACK_WITHIN_S = 20.0


@dataclass(frozen=True, slots=True)
class RateSteps:
    """One of the two parts of the figure."""

    letter: str
    levels: tuple[tuple[float, float], ...]
    """Minutes from which on so many frames come per second."""
    minutes: int

    @property
    def rates(self) -> str:
        """The rates in their order, in words."""
        return ", ".join(f"{rate:g}" for _, rate in self.levels)

    @property
    def spans(self) -> list[tuple[float, float]]:
        """From which to which minute each rate holds."""
        begins = [at for at, _ in self.levels]
        return list(zip(begins, (*begins[1:], float(self.minutes)), strict=True))


LONG = RateSteps("a", ((0.0, 6.0), (6.0, 12.0), (21.0, 6.0), (34.0, 18.0)), 45)
SHORT = RateSteps("b", ((0.0, 6.0), (6.0, 12.0), (9.0, 6.0)), 21)
"""The paper tells of the three minutes at 12 frames per second; what its drawing shows later is
not printed."""


@dataclass(frozen=True, slots=True)
class RatedPolicy:
    """Who decides in one line of the figure."""

    name: str
    text: str
    """Its name with its options, as `start` takes it."""
    between_s: float | None = None
    """T_ra, for a policy that has one."""
    paper: tuple[str, str] | None = None
    """What the paper tells of its decisions in (a) and (b)."""
    cost: str | None = None
    """What the paper tells of their cost in (a)."""


def figure_9(asked: Asked) -> Findings:
    """The long-term change of rates (a) and the short one (b), with each policy."""
    minute_s = 2.5 if asked.quick else 4.0
    findings = []
    with papers_session("drs") as spark:
        warm_up(spark, application("vld"))
        parts = (LONG,) if asked.quick else (LONG, SHORT)
        policies = _policies(minute_s)[2 if asked.quick else 0 :]
        asked.progress.expect(len(policies) * sum(part.minutes for part in parts))
        for part in parts:
            runs = [_run(spark, one, part, minute_s, asked) for one in policies]
            findings.append(told(part, runs, minute_s))
    return Findings(
        compared=tuple(line for one in findings for line in one.compared),
        aims=tuple(aim for one in findings for aim in one.aims),
        pictures=tuple(picture for one in findings for picture in one.pictures),
        notes=(
            f"T_max is {T_MAX_S:g} s and T_min {T_MIN_SHARE * T_MAX_S:g} s: three cut segments"
            " cannot reach the paper's 1000 and 450 ms.",
            f"That T_max is held again within {BACK_WITHIN_S:g} s is an aim for Tidegate's policy"
            " alone. DRS's own is shown for comparison.",
            COST_OF_A_CHANGE,
            *(fault for one in findings for fault in one.notes),
        ),
    )


def _policies(minute_s: float) -> tuple[RatedPolicy, ...]:
    def drs(window: int, *paper: str, cost: str | None = None) -> RatedPolicy:
        ticks = max(round(window * minute_s), 1)
        t_min_ms = 1000 * T_MIN_SHARE * T_MAX_S
        return RatedPolicy(
            f"drs, w {window}",
            f"drs(w={ticks}, t_min={t_min_ms:.0f}ms)",
            window * minute_s,
            (paper[0], paper[1]),
            cost,
        )

    return (
        drs(
            6,
            "12: 3:5:1 to 4:6:1; 26: fewer; 35: more",
            "none",
            cost="12, 35: more than 3000; 26: about 600",
        ),
        drs(3, "9, 24: 3 minutes after the changes", "9, 15"),
        RatedPolicy("tidegate", "latency"),
    )


def _run(
    spark: SparkSession, policy: RatedPolicy, part: RateSteps, minute_s: float, asked: Asked
) -> tuple[RatedPolicy, ApplicationRun]:
    app = application("vld")
    asked.progress.step(
        f"vld under {policy.name}: {part.rates} frames/s, minutes of {minute_s:g} s", part.minutes
    )
    wanted = Wanted(
        app=app,
        split=START,
        seconds=part.minutes * minute_s,
        rate=steps([(at * minute_s, rate) for at, rate in part.levels]),
        pace=PACE,
        policy=policy.text,
        cores=(3, K_MAX),
        target_s=T_MAX_S,
        acts=True,
        between_s=policy.between_s,
    )
    return policy, run(spark, wanted)


def told(
    part: RateSteps, runs: Sequence[tuple[RatedPolicy, ApplicationRun]], minute_s: float
) -> Findings:
    """What the policies did in one part, each by its run."""
    compared: list[Compared] = []
    aims: list[Aim] = []
    drawn = []
    for policy, ran in runs:
        # What is changed after the last row is no part of the figure.
        records = after(ran.records, 0.0, ran.seconds)
        line = Timeline(records, application("vld").operators, minute_s)
        lines, met = of_policy(part, policy, line)
        compared += lines
        aims += met
        drawn.append(Curve(policy.name, *line.by_minute()))
    wrong = wrong_answers([ran for _, ran in runs])
    aims.append(at_most(f"({part.letter}) wrong answers", len(wrong), 0))
    return Findings(
        compared=tuple(compared),
        aims=tuple(aims),
        pictures=(
            Picture(
                f"vld: sojourn at {part.rates} frames/s, T_max {T_MAX_S:g} s"
                f" (figure 9 {part.letter})",
                f"minutes of {minute_s:g} s",
                "seconds",
                tuple(drawn),
            ),
        ),
        notes=tuple(wrong),
    )


def of_policy(
    part: RateSteps, policy: RatedPolicy, line: Timeline
) -> tuple[list[Compared], list[Aim]]:
    """What one policy did in one part, and whether that is what it should."""
    name = f"({part.letter}) {policy.name}"
    minute_s = line.minute_s
    cores = [line.cores_at(end - 0.1) for _, end in part.spans]
    back = [line.back_within_s(b * minute_s, e * minute_s, T_MAX_S) for b, e in part.spans]
    shown = [None if one is None else round(one, 1) for one in back]
    latency = [line.latency_ms(begin, end) for begin, end in part.spans]
    paper = None if policy.paper is None else policy.paper[0 if part is LONG else 1]
    compared = [
        Compared(f"{name}: minute and split of each change", paper, line.shown()),
        Compared(
            f"{name}: ms more in the minute of a change",
            policy.cost if part is LONG else None,
            line.increases(),
        ),
        Compared(f"{name}: cores at the end of {part.rates}", None, str(cores)),
        Compared(f"{name}: ms during {part.rates}", None, str(latency)),
        Compared(f"{name}: seconds until T_max held again", None, str(shown)),
    ]
    aims = []
    if part is LONG:
        aims.append(at_least(f"{name}: cores added at 12", cores[1] - cores[0], 1))
        aims.append(at_least(f"{name}: cores given back at 6", cores[1] - cores[2], 1))
        aims.append(at_least(f"{name}: cores added at 18", cores[3] - cores[2], 1))
    if policy.text == "latency":
        longest = max(math.inf if one is None else one for one in back[1:])
        aims.append(at_most(f"{name}: T_max is held again within", longest, BACK_WITHIN_S, "s"))
    return compared, aims
