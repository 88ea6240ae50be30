"""Figure 9: cores follow the rate of the video, 6, 12 and 18 frames per second.

Two lines are DRS's own policy with windows of 6 and 3 minutes; a third is Tidegate's, which
forecasts the load and decides every second. T_max and T_min are the paper's, 1000 and 450 ms, times
what three segments need more: a row passes through three micro-batches, each with a fixed cost.
"""

from dataclasses import dataclass

from pyspark.sql import SparkSession

from tidegate.apps.catalogue import application
from tidegate.apps.run_application import ApplicationRun
from tidegate.benching import Aim, at_least, at_most
from tidegate.papers.drs.runs import K_MAX, Wanted, papers_session, run, warm_up, wrong_answers
from tidegate.papers.drs.timeline import Timeline
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.view.pages.paper import Curve, Picture
from tidegate.workload.profile import steps

START = (3, 5, 1)
"""The paper's first split."""
LONG = ((0.0, 6.0), (6.0, 12.0), (21.0, 6.0), (34.0, 18.0))
"""Minutes and frames per second of figure 9 (a)."""
MINUTES = 45
T_MAX_S = 8.0
"""The paper's 1000 ms, times 8."""
T_MIN_SHARE = 0.45
PACE = 1.6
"""Operators are this much faster than in figure 6, so that 22 cores serve 18 frames per second."""
BACK_WITHIN_S = 20.0


@dataclass(frozen=True, slots=True)
class _Policy:
    name: str
    text: str
    between_s: float | None = None
    paper: str | None = None
    """What the paper tells of its decisions."""


def figure_9(asked: Asked) -> Findings:
    """The long-term change of rates (a), with each policy."""
    minute_s = 2.5 if asked.quick else 4.0
    with papers_session("drs") as spark:
        warm_up(spark, application("vld"))
        runs = {
            one.name: _run(spark, one, minute_s, asked)
            for one in _policies(minute_s)[2 if asked.quick else 0 :]
        }
    return _told(runs, minute_s)


def _policies(minute_s: float) -> tuple[_Policy, ...]:
    def drs(window: int, paper: str) -> _Policy:
        ticks = max(round(window * minute_s), 1)
        t_min_ms = 1000 * T_MIN_SHARE * T_MAX_S
        return _Policy(
            f"drs, w {window}",
            f"drs(w={ticks}, t_min={t_min_ms:.0f}ms)",
            window * minute_s,
            paper,
        )

    return (
        drs(6, "12: 3:5:1 to 4:6:1; 26: fewer; 35: more"),
        drs(3, "9, 24: 3 minutes after the changes"),
        _Policy("tidegate", "latency"),
    )


def _run(
    spark: SparkSession, policy: _Policy, minute_s: float, asked: Asked
) -> tuple[_Policy, ApplicationRun]:
    app = application("vld")
    asked.say(f"vld under {policy.name}: 6, 12, 6, 18 frames/s, minutes of {minute_s:g} s")
    wanted = Wanted(
        app=app,
        split=START,
        seconds=MINUTES * minute_s,
        rate=steps([(at * minute_s, rate) for at, rate in LONG]),
        pace=PACE,
        policy=policy.text,
        cores=(3, K_MAX),
        target_s=T_MAX_S,
        acts=True,
        between_s=policy.between_s,
    )
    return policy, run(spark, wanted)


def _told(runs: dict[str, tuple[_Policy, ApplicationRun]], minute_s: float) -> Findings:
    operators = application("vld").operators
    compared: list[Compared] = []
    aims: list[Aim] = []
    drawn = []
    for name, (policy, ran) in runs.items():
        line = Timeline(ran.records, operators, minute_s)
        ends = (*(at for at, _ in LONG[1:]), float(MINUTES))
        cores = [line.cores_at(at - 0.1) for at in ends]
        spans = list(zip((at for at, _ in LONG), ends, strict=True))
        back = [
            line.back_within_s(begin * minute_s, end * minute_s, T_MAX_S) for begin, end in spans
        ]
        shown = [None if one is None else round(one, 1) for one in back]
        latency = [line.latency_ms(begin, end) for begin, end in spans]
        compared += [
            Compared(f"{name}: minute and split of each change", policy.paper, line.shown()),
            Compared(f"{name}: cores at the end of 6, 12, 6, 18", None, str(cores)),
            Compared(f"{name}: ms during 6, 12, 6, 18", None, str(latency)),
            Compared(f"{name}: seconds until T_max held again", None, str(shown)),
        ]
        aims.append(at_least(f"{name}: cores added at 12", cores[1] - cores[0], 1))
        aims.append(at_least(f"{name}: cores given back at 6", cores[1] - cores[2], 1))
        aims.append(at_least(f"{name}: cores added at 18", cores[3] - cores[2], 1))
        if policy.text == "latency":
            longest = max(1e9 if one is None else one for one in back[1:])
            aims.append(at_most(f"{name}: T_max is held again within", longest, BACK_WITHIN_S, "s"))
        drawn.append(Curve(name, *line.by_minute()))
    wrong = wrong_answers([ran for _, ran in runs.values()])
    aims.append(at_most("wrong answers", len(wrong), 0))
    return Findings(
        compared=tuple(compared),
        aims=tuple(aims),
        pictures=(
            Picture(
                f"vld: sojourn at 6, 12, 6, 18 frames/s, T_max {T_MAX_S:g} s (figure 9 a)",
                f"minutes of {minute_s:g} s",
                "seconds",
                tuple(drawn),
            ),
        ),
        notes=(
            f"T_max is {T_MAX_S:g} s and T_min {T_MIN_SHARE * T_MAX_S:g} s: three cut segments"
            " cannot reach the paper's 1000 and 450 ms.",
            *wrong,
        ),
    )
