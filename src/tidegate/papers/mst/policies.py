"""Figures 7 and 8 and table III, which show the same runs: on average, and by application.

Beside the paper's policies run our own policy for machines by the minute, at two QoS targets, and
the controller that runs on Spark.
"""

from tidegate.papers.figure import Asked, Findings
from tidegate.papers.mst.averages import averaged
from tidegate.papers.mst.by_application import by_application
from tidegate.papers.mst.contenders import (
    MODELLED,
    ON_SPARK,
    ONE_RUN,
    PAPERS,
    Scores,
    run_contenders,
    with_ours,
)
from tidegate.papers.mst.loads import asked_weeks, said
from tidegate.papers.mst.mean_and_deviation import Measures


def figures_7_and_8(asked: Asked) -> Findings:
    """Run all policies over all applications, each under its own load."""
    contenders = with_ours(PAPERS, asked)
    weeks = asked_weeks(asked.extra)
    return told(run_contenders(contenders, weeks, asked), said(weeks))


def told(scores: Scores, loads: str) -> Findings:
    """Both figures, one after the other."""
    parts = (
        averaged({one: Measures.of(runs) for one, runs in scores.items()}),
        by_application(scores),
    )
    return Findings(
        compared=tuple(row for part in parts for row in part.compared),
        aims=tuple(aim for part in parts for aim in part.aims),
        pictures=tuple(picture for part in parts for picture in part.pictures),
        notes=(loads, MODELLED, *([ONE_RUN] if ON_SPARK in scores else [])),
    )
