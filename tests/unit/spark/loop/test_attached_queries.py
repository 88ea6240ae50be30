"""What is known of the queries that an attachment sees: which began, and which still run."""

import threading
from types import SimpleNamespace

from tests.helpers.fake_query import FakeQuery
from tidegate.spark.kafka.stream_sources import query_sources
from tidegate.spark.loop.attached_queries import AttachedQueries


def query(name: str) -> FakeQuery:
    found = FakeQuery(name)
    found.exception = lambda: None
    return found


def test_every_query_is_told_once_when_it_begins() -> None:
    running, told = [query("a")], []
    queries = AttachedQueries(lambda: running)
    queries.began = lambda one: told.append(one.name)
    queries()
    queries()
    running.append(query("b"))
    queries()
    assert told == ["a", "b"]
    assert queries.runs("run-a") and queries.runs("run-b")
    del running[0]
    queries()
    assert not queries.runs("run-a") and queries.runs("run-b")


class Leaves(list):
    def size(self) -> int:
        return len(self)

    def apply(self, place: int) -> object:
        return self[place]


def planned(*sources: dict[str, str]) -> FakeQuery:
    """A query whose plan reads these sources of Kafka, and one of files."""

    def leaf(kind: str, options: dict[str, str]) -> SimpleNamespace:
        return SimpleNamespace(
            getClass=lambda: SimpleNamespace(getSimpleName=lambda: "StreamingRelationV2"),
            sourceName=lambda: kind,
            extraOptions=lambda: SimpleNamespace(asCaseSensitiveMap=lambda: options),
        )

    leaves = Leaves([leaf("kafka", one) for one in sources] + [leaf("parquet", {})])
    made = query("clicks")
    plan = SimpleNamespace(collectLeaves=lambda: leaves)
    made._jsq.streamingQuery = lambda: SimpleNamespace(analyzedPlan=lambda: plan)
    return made


def test_the_brokers_of_a_query_are_in_its_plan() -> None:
    (source,) = query_sources(planned({"kafka.bootstrap.servers": "host:9092", "subscribe": "a"}))
    assert source.servers == "host:9092" and source.topics == ("a",)
    assert query_sources(query("whose plan is elsewhere")) == []


def test_brokers_are_watched_until_the_attachment_ends(monkeypatch) -> None:
    from tidegate.spark.loop import attach as module
    from tidegate.spark.loop.attach import Attachment

    watched = []
    monkeypatch.setattr(module, "watch_query", lambda one, ended: watched.append((one, ended)))
    running = [query("a")]
    queries = AttachedQueries(lambda: running)
    attachment = SimpleNamespace(_queries=queries, _ended=threading.Event())
    queries.began = lambda one: Attachment._began(attachment, one)
    queries()
    ((_, ended),) = watched
    assert not ended(0.0)
    running.clear()
    queries()
    assert ended(0.0), "the query has ended"
    running.append(query("b"))
    queries()
    _, ended = watched[-1]
    assert not ended(0.0)
    attachment._ended.set()
    assert ended(0.0), "nobody is attached any more"
