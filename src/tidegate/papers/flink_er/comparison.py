"""Figures 7 to 10: one application under static tasks, `flow` and `latency`, side by side."""

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from tidegate.benching import Aim, at_least, at_most
from tidegate.models.flow.limiting import LIMITING
from tidegate.papers.application_runs import wrong_answers
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.papers.flink_er.experiments import (
    CAMPAIGNS,
    LEARNING,
    SENTIMENT,
    WORDCOUNT,
    LoadExperiment,
)
from tidegate.papers.flink_er.outcome import StrategyOutcome, outcome_of
from tidegate.papers.flink_er.paper_says import SAID, PaperSays
from tidegate.papers.flink_er.pictures import pictures
from tidegate.papers.flink_er.runs import (
    FLOW,
    QUICK_WARM_UP_S,
    STATIC,
    STRATEGIES,
    WARM_UP_S,
    run,
    warm_up,
)
from tidegate.papers.flink_er.setting import (
    CORES,
    LEAST_GAIN,
    MASTER,
    MINUTE_S,
    MOST,
    MOST_GAIN,
    PAPERS_BREAK_S,
    PEAK_FROM,
    QUICK_MINUTE_S,
    TARGET_S,
)
from tidegate.papers.sessions import spark_on

GAIN = "throughput at the peak, flow over static"
BREAK = "longest break at a rescale, flow"
RIGHT = "runs with wrong answers"
"""Names of aims, by which table 3 finds them in the results."""
MOST_BREAK_S = 1.0


def compare(experiment: LoadExperiment, asked: Asked) -> Findings:
    """Run one application under each strategy."""
    experiment.application.check()
    minute_s = QUICK_MINUTE_S if asked.quick else MINUTE_S
    outcomes, ran = [], []
    with spark_on(MASTER, "tidegate paper flink-er") as spark:
        asked.progress.doing(f"{experiment.title}: warming up")
        warm_up(spark, experiment, QUICK_WARM_UP_S if asked.quick else WARM_UP_S)
        asked.progress.expect(len(STRATEGIES))
        for strategy in STRATEGIES:
            asked.progress.step(f"{experiment.title}, {strategy.name}: minutes of {minute_s:g} s")
            one = run(spark, experiment, strategy, minute_s=minute_s, say=asked.say)
            ran.append(one.ran)
            outcomes.append(
                outcome_of(strategy.name, one.ran.records, experiment.reader, minute_s, one.usage)
            )
    return told(experiment, outcomes, wrong_answers(ran), minute_s)


figure_7: Callable[[Asked], Findings] = partial(compare, WORDCOUNT)
figure_8: Callable[[Asked], Findings] = partial(compare, SENTIMENT)
figure_9: Callable[[Asked], Findings] = partial(compare, LEARNING)
figure_10: Callable[[Asked], Findings] = partial(compare, CAMPAIGNS)


def told(
    experiment: LoadExperiment,
    outcomes: Sequence[StrategyOutcome],
    wrong: Sequence[str],
    minute_s: float,
) -> Findings:
    """Ours beside what the paper says."""
    load = experiment.load(minute_s)
    says = SAID[experiment.figure]
    return Findings(
        compared=(
            Compared(
                f"{experiment.rows}/s that arrive at the peak; that six cores can do",
                None,
                f"{load.capacity * load.peak:,.0f}; {load.capacity:,.0f}",
            ),
            *(line for one in outcomes for line in _of_strategy(experiment, one, says)),
            *(_gain(one, outcomes) for one in outcomes if one.strategy != STATIC.name),
        ),
        aims=tuple(aims(outcomes, wrong)),
        pictures=tuple(pictures(experiment, outcomes)),
        notes=(
            f"A minute of the paper is {minute_s:g} s. {CORES} tasks of each operator are the"
            f" paper's {CORES} machines, and up to {MOST - CORES} more its standby ones.",
            f"The paper prints no gain. {MOST} machines that are always busy do {MOST_GAIN:.2f}"
            f" times what {CORES} do. The aim is {LIMITING:.0%} of that: to eq. 11, a cut that is"
            " fuller is a bottleneck.",
            "A break is what the first batch after a rescale takes longer than those around it.",
            "Operators wait and need no CPU: the share of occupied cores is what the paper's CPU"
            " utilisation shows, and the CPU time is that of the real work and of Spark.",
            *experiment.notes,
            *wrong,
        ),
    )


def aims(outcomes: Sequence[StrategyOutcome], wrong: Sequence[str]) -> list[Aim]:
    """What `flow` has to show against static tasks."""
    by_name = {one.strategy: one for one in outcomes}
    flow, static = by_name[FLOW.name], by_name[STATIC.name]
    return [
        at_least(GAIN, _over(flow, static), round(LEAST_GAIN, 2)),
        at_most("latency at the peak, flow", flow.peak_latency_s, TARGET_S, "s"),
        at_least("latency at the peak, static", static.peak_latency_s, TARGET_S, "s"),
        at_most(BREAK, flow.longest_break_s, MOST_BREAK_S, "s"),
        at_most(RIGHT, len(wrong), 0),
    ]


def _over(one: StrategyOutcome, static: StrategyOutcome) -> float:
    return one.peak_rows_per_s / max(static.peak_rows_per_s, 1e-9)


def _gain(one: StrategyOutcome, outcomes: Sequence[StrategyOutcome]) -> Compared:
    static = next(other for other in outcomes if other.strategy == STATIC.name)
    within = one.rows_per_s_within / max(static.rows_per_s_within, 1e-9)
    return Compared(
        f"{one.strategy}: throughput at the peak over static; the highest within {TARGET_S:g} s",
        f"not printed; {MOST_GAIN:.2f} at most" if one.strategy == FLOW.name else None,
        f"{_over(one, static):.2f}; {within:.2f}",
    )


def _of_strategy(
    experiment: LoadExperiment, one: StrategyOutcome, says: PaperSays
) -> list[Compared]:
    static, flow = one.strategy == STATIC.name, one.strategy == FLOW.name
    throughput = says.static_throughput if static else says.flow_throughput if flow else None
    latency = says.static_latency if static else says.flow_latency if flow else None
    name = one.strategy
    lines = [
        Compared(
            f"{name}: {experiment.rows}/s done from minute {PEAK_FROM} on",
            throughput,
            round(one.peak_rows_per_s),
        ),
        Compared(
            f"{name}: latency there; the highest of a minute, s",
            latency,
            f"{_seconds(one.peak_latency_s)}; {_seconds(max(one.latencies_s, default=None))}",
        ),
        Compared(f"{name}: most rows waiting", None, round(one.most_waiting)),
    ]
    if one.usage:
        lines.append(
            Compared(
                f"{name}: share of its cores that is occupied at the peak; CPU of the machine;"
                " memory of all processes, MB",
                says.static_cpu if static else None,
                f"{_mean_occupied(one):.0%}; {_mean_cpu(one):.0%};"
                f" {max(each.memory_mb for each in one.usage):,.0f}",
            )
        )
    if static:
        return lines
    longest = one.longest_break_s
    lines += [
        Compared(
            f"{name}: minute of each change",
            says.when if flow else None,
            "; ".join(f"{at:.1f}: {what}" for at, what in one.changes) or "none",
        ),
        Compared(
            f"{name}: longest break at a rescale, s",
            f"about {PAPERS_BREAK_S:g}" if flow else None,
            None if longest is None else round(longest, 2),
        ),
        Compared(
            f"{name}: longest gap between results; the median one, s",
            None,
            f"{max(one.gaps_s, default=math.nan):.2f}; {_median(one.gaps_s):.2f}",
        ),
    ]
    return lines


def _seconds(value: float | None) -> str:
    return "none" if value is None else f"{value:.1f}"


def _median(values: Sequence[float]) -> float:
    return float(np.median(values)) if values else math.nan


def _mean_occupied(one: StrategyOutcome) -> float:
    return float(np.mean([each.occupied for each in one.minutes if each.at > PEAK_FROM]))


def _mean_cpu(one: StrategyOutcome) -> float:
    late = [each.cpu for each in one.usage if each.at > PEAK_FROM]
    return float(np.mean(late)) if late else math.nan
