"""Which records a topic no longer has, by the offsets of the checkpoint and of the broker."""

from pathlib import Path

import pytest

from tidegate.spark.kafka.source_checks import committed_offsets, lost
from tidegate.spark.kafka.stream_sources import StreamSource
from tidegate.spark.state.files import Durable


def write_log(root: Path, offsets: list[str], committed: int) -> Durable:
    for name in ("offsets", "commits"):
        (root / name).mkdir()
    for batch, line in enumerate(offsets):
        (root / "offsets" / str(batch)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{line}')
        if batch < committed:
            (root / "commits" / str(batch)).write_text("v1\n{}")
    return Durable(str(root))


def test_offsets_are_those_of_the_last_committed_batch(tmp_path: Path) -> None:
    lines = [f'{{"t":{{"0":{n},"1":{2 * n}}}}}\n{{"logOffset":{n}}}\n7' for n in (5, 10, 15)]
    place = write_log(tmp_path, lines, committed=2)
    assert committed_offsets(place) == {"t": {0: 10, 1: 20}}


def test_a_new_checkpoint_has_read_nothing(tmp_path: Path) -> None:
    assert committed_offsets(Durable(str(tmp_path / "new"))) == {}


@pytest.mark.parametrize(
    ("oldest", "ends", "said"),
    [
        ({0: 0, 1: 0}, {0: 10, 1: 30}, None),
        ({0: 10, 1: 20}, {0: 10, 1: 20}, None),
        ({0: 14, 1: 20}, {0: 20, 1: 20}, "lost 4 records of partition 0 that"),
        ({0: 14, 1: 1021}, {0: 20, 1: 2000}, "lost 1,005 records of partitions 0, 1 that"),
        ({0: 0, 1: 0}, {0: 9, 1: 20}, "up to offset 10 of partition 0, and the topic ends before"),
        ({0: 0}, {0: 99}, "up to offset 20 of partition 1, and the topic ends before"),
    ],
)
def test_what_is_lost(oldest: dict, ends: dict, said: str | None) -> None:
    found = lost({"t": {0: 10, 1: 20}}, {"t": oldest}, {"t": ends})
    assert found is None if said is None else (found is not None and said in found)


def test_a_topic_that_was_not_asked_about_is_not_judged() -> None:
    assert lost({"t": {0: 10}}, {}, {}) is None
    assert lost({}, {"t": {0: 10}}, {"t": {0: 10}}) is None


def test_what_a_source_reads() -> None:
    source = StreamSource(
        {
            "kafka.bootstrap.servers": "a:1,b:2",
            "subscribe": "x, y",
            "kafka.security.protocol": "SASL_SSL",
            "failondataloss": "False",
        }
    )
    assert source.topics == ("x", "y") and source.servers == "a:1,b:2"
    assert source.encrypted and not source.fails_on_loss and source.pattern is None
    assert source.client["bootstrap.servers"] == "a:1,b:2" and len(source.client) == 2
    assigned = StreamSource({"assign": '{"z":[0,1]}'})
    assert assigned.topics == ("z",) and assigned.fails_on_loss and not assigned.encrypted
    assert StreamSource({"subscribepattern": "t.*"}).pattern == "t.*"
