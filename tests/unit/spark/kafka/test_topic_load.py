"""The records of a load, and the count of what was produced."""

import json

import numpy as np
import pytest

from tidegate.errors import AskedWrongly
from tidegate.spark.kafka.produced import KeyTally, Produced
from tidegate.spark.kafka.topic_load import TopicLoad, encoded
from tidegate.workload.profile import steps


def test_records_hold_the_rows_exactly():
    load = TopicLoad.of("step:100@0,300@1", "zipf:50,0.8@1", 2.0, seed=3)
    assert load.count == 400 and load.arrived(1000) == 100 and load.arrived(99_000) == 400
    rows = load.rows(0, load.count)
    keys, values = encoded(rows, "json")
    parsed = [json.loads(value) for value in values]
    assert [int(key) for key in keys] == [row["key"] for row in parsed] == rows.key.tolist()
    assert [row["value"] for row in parsed] == rows.value.tolist()
    assert [row["seq"] for row in parsed] == list(range(400))


def test_keys_alone_are_words():
    rows = TopicLoad.of("constant:100", "uniform:9", 1.0, form="key").rows(0, 100)
    keys, values = encoded(rows, "key")
    assert keys == values == [b"%d" % key for key in rows.key.tolist()]


def test_a_load_reaches_another_process():
    load = TopicLoad.of(
        steps([(0.0, 10.5), (1.25, 0.1)]), "zipf:50,0.8@1", 20.0, seed=3, form="key"
    )
    other = TopicLoad.of_document(json.loads(json.dumps(load.document())))
    assert other.document() == load.document()
    assert other.profile.fingerprint == load.profile.fingerprint


@pytest.mark.parametrize(("seconds", "form"), [(0.0, "json"), (float("nan"), "key"), (1.0, "xml")])
def test_what_is_no_load_is_refused(seconds, form):
    with pytest.raises(AskedWrongly):
        TopicLoad.of("constant:1", "uniform:1", seconds, form=form)


def test_a_tally_of_many_blocks_is_that_of_all():
    draw = np.random.default_rng(0)
    blocks = [draw.integers(0, 40, 25) for _ in range(700)]
    tally = KeyTally()
    for block in blocks:
        tally.add(block)
    keys, counts = tally.totals()
    expected = np.bincount(np.concatenate(blocks))
    assert keys.tolist() == list(range(40)) and counts.tolist() == expected.tolist()
    tally.add(keys[:1], -counts[:1])
    assert tally.totals()[0].tolist() == keys[1:].tolist()
    assert KeyTally().totals()[0].tolist() == []


def test_what_was_produced_reaches_another_process():
    sent = Produced(5, 1, np.array([2, 9]), np.array([1, 4]), 1000, 0.25)
    other = Produced.of_document(json.loads(json.dumps(sent.document())))
    assert other.per_key == {2: 1, 9: 4}
    assert other.document() == sent.document()
