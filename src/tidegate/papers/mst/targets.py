"""Figure 9: QoS and cost against the QoS target rho, for policy 7 and for our own."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from tidegate.benching import Aim, at_least, at_most
from tidegate.control.names import PRICED
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.papers.mst.contenders import (
    MODELLED,
    Contender,
    Scores,
    numbered,
    run_contenders,
)
from tidegate.papers.mst.loads import asked_weeks, said
from tidegate.papers.mst.mean_and_deviation import Measures, with_error_bars
from tidegate.view.pages.paper import Curve, Picture

RHOS = (0.5, 0.7, 0.9, 0.95)
FURTHER = 0.99
"""A target that the paper does not ask for."""
PAPERS_CORRELATION = 0.652
HIGH = 0.9
"""Targets from here on are those that somebody asks for."""
OUR_SEEDS = 2
"""Our own policy takes twenty times as long to simulate as the paper's."""
SEVEN = numbered(7)[0]
OURS = Contender(PRICED, seeds=OUR_SEEDS)

Found = Mapping[Contender, Measures]


def figure_9(asked: Asked) -> Findings:
    """Run both policies at every rho."""
    weeks = asked_weeks(asked.extra)
    contenders = [replace(one, rho=rho) for one in (SEVEN, OURS) for rho in (*RHOS, FURTHER)]
    scores = run_contenders(contenders, weeks, asked)
    return told(scores, said(weeks))


def correlation(scores: Scores, policy: str) -> float:
    """Pearson's coefficient of rho and the QoS of single runs, over the paper's targets."""
    pairs = [
        (contender.rho, score.qos)
        for contender, runs in scores.items()
        if contender.policy == policy and contender.rho in RHOS
        for score in runs
    ]
    asked, got = np.array(pairs).T
    return float(np.corrcoef(asked, got)[0, 1])


def distance(scores: Scores, policy: str) -> float:
    """How far the QoS of single runs is from rho, in points: the mean for targets from 0.9 on."""
    return float(
        np.mean(
            [
                abs(score.qos - 100.0 * contender.rho)
                for contender, runs in scores.items()
                if contender.policy == policy and contender.rho >= HIGH
                for score in runs
            ]
        )
    )


def told(scores: Scores, loads: str) -> Findings:
    """The table, the aims and the charts of what was found."""
    found = {one: Measures.of(runs) for one, runs in scores.items()}
    ours, theirs = correlation(scores, PRICED), correlation(scores, SEVEN.policy)
    return Findings(
        compared=(
            *(_row(one, measures) for one, measures in found.items()),
            Compared("correlation of rho and QoS, policy 7", PAPERS_CORRELATION, round(theirs, 3)),
            Compared(f"correlation of rho and QoS, {PRICED}", None, round(ours, 3)),
            *(
                Compared(
                    f"QoS from rho, points, for rho of {HIGH} and more, {policy}",
                    None,
                    round(distance(scores, policy), 2),
                )
                for policy in (SEVEN.policy, PRICED)
            ),
        ),
        aims=(
            *_aims(found, theirs, ours),
            at_most(
                f"QoS from rho, {PRICED} over policy 7, for rho of {HIGH} and more",
                distance(scores, PRICED) / distance(scores, SEVEN.policy),
                1.0,
            ),
        ),
        pictures=(
            Picture("QoS against its target", "rho", "per cent", _lines(found, "qos")),
            Picture("Cost over the ground truth's", "rho", "times", _lines(found, "over_truth")),
            Picture("Cost over the static peak's", "rho", "times", _lines(found, "over_peak")),
        ),
        notes=(
            loads,
            MODELLED,
            "The correlation is over single runs of all applications, of which VHT has 100 %"
            " whatever rho is. Our own policy never plans for less than the likely load, so below"
            " about 0.85 its QoS hardly follows rho.",
        ),
    )


def _row(contender: Contender, measures: Measures) -> Compared:
    return Compared(
        f"{contender.policy}, rho {contender.rho:g}: QoS %, cost / truth, / peak",
        None,
        f"{measures.qos.shown(2)}, {measures.over_truth.shown(3)}, {measures.over_peak.shown(3)}",
    )


def _aims(found: Found, theirs: float, ours: float) -> list[Aim]:
    mine = {one.rho: measures for one, measures in found.items() if one.policy == PRICED}
    missing = [measures.qos.mean - 100.0 * rho for rho, measures in mine.items()]
    return [
        at_least("correlation of rho and QoS, policy 7", theirs, PAPERS_CORRELATION),
        at_least(f"correlation of rho and QoS, {PRICED}", ours, PAPERS_CORRELATION),
        at_least(f"{PRICED}: QoS above its target, least, points", min(missing), 0.0),
        at_least("policy 7: QoS, steps with rho, least", min(_steps(found)), 0.0),
    ]


def _steps(found: Found) -> Sequence[float]:
    seven = [measures.qos.mean for one, measures in found.items() if one.policy == SEVEN.policy]
    return [after - before for before, after in pairwise(seven)]


def _lines(found: Found, measure: str) -> tuple[Curve, ...]:
    lines = []
    for policy in dict.fromkeys(one.policy for one in found):
        mine = {
            one.rho: getattr(measures, measure)
            for one, measures in found.items()
            if one.policy == policy
        }
        lines.append(with_error_bars(policy, mine))
    return tuple(lines)
