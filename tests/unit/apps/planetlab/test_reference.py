"""The check of the queries' answers finds every kind of wrong answer."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from tidegate.apps.application import Verdict
from tidegate.apps.planetlab.load import readings_of, sent_rows
from tidegate.apps.planetlab.reference import QueryAnswers, WindowAverages, judged
from tidegate.control.row_counts import SourceCount
from tidegate.pipelines.shedding import WEIGHT
from tidegate.workload.cpu import cpu_series

QUERIES, NODES, SEED, OFFERED = 3, 4, 7, 900
START_US = 1_700_000_000_000_000
SERIES = cpu_series(nodes=NODES)
NUMBERS = np.flatnonzero(np.random.default_rng(1).random(OFFERED) < 0.5)
COUNTS = SourceCount(name="source", offered=OFFERED, kept=len(NUMBERS))
SENT = sent_rows(NODES, SEED, OFFERED)


def stamped(at_us: np.ndarray) -> pa.Array:
    return pa.array(at_us).cast(pa.timestamp("us", tz="UTC"))


def kept_rows() -> pa.Table:
    return pa.table(
        {
            "seq": NUMBERS,
            "key": SENT.key[NUMBERS],
            "timestamp": stamped(START_US + SENT.arrival_us[NUMBERS]),
            WEIGHT: np.where(NUMBERS < OFFERED // 2, 2.0, 4.0),
        }
    )


def emitted() -> pa.Table:
    """The right answers, after those of a batch that had seen only some of the rows."""
    at_us = START_US + SENT.arrival_us[NUMBERS]
    cpu = readings_of(SERIES, at_us, SENT.key[NUMBERS])
    weight = kept_rows()[WEIGHT].to_numpy()
    some = slice(0, len(NUMBERS) // 2)
    parts = [
        WindowAverages.of(at_us[some], cpu[some], weight[some]),
        WindowAverages.of(at_us, cpu, weight),
    ]
    return pa.concat_tables(
        pa.table(
            {
                "query": np.repeat(np.arange(QUERIES), len(one.window)),
                "window_start": stamped(np.tile(one.window * 1_000_000, QUERIES)),
                "rows": np.tile(one.rows, QUERIES),
                "cpu": np.tile(one.cpu, QUERIES),
                "cpu_se": np.full(QUERIES * len(one.window), 5.0),
            }
        )
        for one in parts
    )


def verdict(
    answers: pa.Table, kept: pa.Table | None = None, counts: SourceCount = COUNTS
) -> Verdict:
    rows = kept_rows() if kept is None else kept
    return judged(SERIES, SEED, QUERIES, counts, rows, QueryAnswers.of(answers))


def changed(name: str, change: Callable[[np.ndarray], None]) -> pa.Table:
    """The answers with one column changed."""
    table = emitted()
    column = table[name].to_numpy().copy()
    change(column)
    return table.set_column(table.column_names.index(name), name, pa.array(column))


def test_right_answers_are_right_and_say_how_far_off_the_truth_they_are() -> None:
    found = verdict(emitted())
    assert found.correct, found.said
    assert 0.0 < found.figures["mean_error_points"] < 20.0
    assert found.figures["within_stated_error"] > 0.5


def test_every_query_has_its_own_count_of_rows() -> None:
    per_query = QueryAnswers.of(emitted()).rows_per_query(QUERIES)
    assert per_query.tolist() == [len(NUMBERS)] * QUERIES


def _off(values: np.ndarray) -> None:
    values[-1] += 1


@pytest.mark.parametrize("name", ["cpu", "rows"])
def test_one_wrong_value_of_one_query_is_found(name: str) -> None:
    found = verdict(changed(name, _off))
    assert not found.correct
    assert "1 of" in found.said


def test_a_missing_second_is_found() -> None:
    table = emitted()
    assert not verdict(table.slice(0, table.num_rows - 1).slice(1)).correct


def test_answers_of_too_few_rows_are_found() -> None:
    table = emitted()
    half = table.slice(0, table.num_rows // 2)
    assert not verdict(half).correct


def test_a_kept_row_that_nobody_sent_is_found() -> None:
    rows = kept_rows()
    keys = rows["key"].to_numpy().copy()
    keys[3] = (keys[3] + 1) % NODES
    found = verdict(emitted(), rows.set_column(1, "key", pa.array(keys)))
    assert not found.correct
    assert "not those that were sent" in found.said


def test_a_row_that_is_not_counted_is_found() -> None:
    fewer = SourceCount(name="source", offered=OFFERED, kept=len(NUMBERS) - 1)
    assert not verdict(emitted(), counts=fewer).correct


def test_nothing_kept_is_right_only_if_nothing_was_counted() -> None:
    none = QueryAnswers.of(None)
    nothing = SourceCount(name="source", offered=5, kept=0)
    assert judged(SERIES, SEED, QUERIES, nothing, None, none).correct
    assert not judged(SERIES, SEED, QUERIES, COUNTS, None, none).correct
