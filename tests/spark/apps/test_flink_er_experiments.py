"""Flink-ER's experiments, in small: the long ones run by command."""

import pytest

from tidegate.papers.flink_er.experiments import WORDCOUNT
from tidegate.papers.flink_er.outcome import outcome_of
from tidegate.papers.flink_er.runs import Strategy, run
from tidegate.papers.flink_er.setting import MINUTES
from tidegate.papers.flink_er.state_moves import CAMPAIGNS, Filling, measure

pytestmark = [pytest.mark.spark, pytest.mark.experiment]
"""Run by `make apps`: it takes too long for `make test`."""


def test_an_application_runs_under_its_rising_load(spark) -> None:
    said: list[str] = []
    flow = Strategy("flow", "flow", (2, 4))
    done = run(spark, WORDCOUNT, flow, minute_s=0.4, say=said.append)
    assert done.ran.verdict is not None and done.ran.verdict.correct, done.ran.verdict
    found = outcome_of("flow", done.ran.records, WORDCOUNT.reader, 0.4)
    # On a busy machine the first batch alone may take longer than all minutes.
    assert len(found.minutes) == MINUTES
    assert {record.policy for record in done.ran.records} == {"flow"}
    assert all(line.startswith("WordCount, flow, minute") for line in said)


def test_state_moves_with_right_answers(spark) -> None:
    filling = Filling(about="300", extra={"campaigns": "300", "ads": "1"}, rows=2000)
    found = measure(spark, CAMPAIGNS, filling, cache=None)
    assert found.wrong is None
    assert found.state_bytes > 0 and found.written_bytes > 0
    # One process has one node: nothing moves while it runs, and a restart reads what is there.
    assert found.moved_shards == 0.0 and found.rescaled.fetched_bytes == 0
    assert found.restarted.gap_s > found.restarted.usual_s > 0.0
