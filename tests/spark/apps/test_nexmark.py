"""Nexmark on Spark: the pipelines, and Spark's own queries, give the answers of the references."""

import numpy as np
import pytest

from tidegate.apps.application import Settings
from tidegate.apps.catalogue import application
from tidegate.apps.nexmark.currency import QUERY as Q1
from tidegate.apps.nexmark.events import KINDS, NexmarkEvents
from tidegate.apps.nexmark.hot_items import QUERY as Q5
from tidegate.apps.nexmark.hot_items import first_of_equals
from tidegate.apps.nexmark.local_items import QUERY as Q3
from tidegate.apps.nexmark.new_users import QUERY as Q8
from tidegate.apps.nexmark.query import answers_of
from tidegate.apps.nexmark.reference import picked
from tidegate.apps.nexmark.selection import QUERY as Q2
from tidegate.apps.nexmark.user_sessions import QUERY as Q11
from tidegate.apps.run_application import run_application
from tidegate.workload.parse import parse_profile

pytestmark = pytest.mark.spark


def test_plain_queries_over_tables_give_the_references_answers(spark) -> None:
    events = NexmarkEvents(parse_profile("constant:200"), seed=2)
    frames = {kind: spark.createDataFrame(events.of(kind, np.arange(6000))) for kind in KINDS}
    for query in (Q1, Q2, Q3, Q5, Q8, Q11):
        inputs = [pick.of(frames[pick.kind]) for pick in query.picks]
        expected = query.expected(picked(query, events, 6000))
        if query is Q5:
            expected = first_of_equals(expected)
        assert answers_of(query.plain(inputs).toArrow()) == expected, query.name
        assert expected.total() > 10


@pytest.mark.parametrize("name", ["q3", "q5", "q8", "q11"])
def test_the_answers_are_right(spark, name: str) -> None:
    settings = Settings(rate=parse_profile("constant:1000"), seconds=2.5, extra={"speed": "60"})
    ran = run_application(spark, application(f"nexmark-{name}"), settings, cores=(2, 4))
    assert ran.verdict is not None
    assert ran.verdict.correct, ran.verdict.said
    assert ran.verdict.figures["events"] == ran.arrived == 2500
    if name in ("q3", "q8"):
        assert ran.verdict.figures["answers"] >= 2
