"""The stateless operators, against Python's own text functions on the same lines."""

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.apps.storm_benchmark.by_hand import numbered
from tidegate.apps.storm_benchmark.access_log import AccessLog
from tidegate.apps.storm_benchmark.data_clean import KEPT, VIEWED, clean
from tidegate.apps.storm_benchmark.grep import find
from tidegate.apps.storm_benchmark.rolling_count import split
from tidegate.apps.storm_benchmark.sentences import Sentences
from tidegate.apps.storm_benchmark.topology import spout_of
from tidegate.apps.storm_benchmark.view import PARTS, view, view_schema
from tidegate.workload.parse import parse_profile

TEXT = spout_of(Sentences(5, 300).lines, None)
LOG = spout_of(AccessLog(5, 7, 30).lines, None)
RANGES = st.tuples(st.integers(0, 10**6), st.integers(0, 50)).map(lambda one: (one[0], sum(one)))


def test_event_times_are_the_sources_or_follow_from_the_number() -> None:
    rows = numbered(100, 110)
    assert TEXT(rows)["at"].equals(rows["timestamp"])
    rate = parse_profile("constant:10")
    at_us = spout_of(Sentences(5, 300).lines, rate)(rows)["at"].cast(pa.int64())
    assert at_us.to_pylist() == rate.arrival_us(np.arange(100, 110)).tolist()


@given(RANGES)
def test_a_view_has_the_parts_of_its_line(between: tuple[int, int]) -> None:
    rows = LOG(numbered(*between))
    made = view("seq", *PARTS, "at")(rows)
    assert made["seq"].equals(rows["seq"]) and made["at"].equals(rows["at"])
    parts = [made[name].to_pylist() for name in PARTS]
    assert ["\t".join(map(str, line)) for line in zip(*parts, strict=True)] == rows[
        "line"
    ].to_pylist()


def test_a_view_declares_its_columns() -> None:
    assert view_schema("url", "user", "at") == "url string, user long, at timestamp"


@given(RANGES)
def test_words_are_those_of_their_line(between: tuple[int, int]) -> None:
    rows = TEXT(numbered(*between))
    made = split(rows)
    lines = [line.split(" ") for line in rows["line"].to_pylist()]
    assert made.rows["word"].to_pylist() == [word for line in lines for word in line]
    parents = made.positions(rows.num_rows)
    assert parents.tolist() == [place for place, line in enumerate(lines) for _ in line]
    assert made.rows["at"].to_pylist() == rows["at"].take(pa.array(parents)).to_pylist()


@pytest.mark.parametrize("pattern", ["string", "^b", "(an|en)g", "s$", "no such thing"])
@given(between=RANGES)
def test_lines_with_the_pattern_are_found(pattern: str, between: tuple[int, int]) -> None:
    rows = TEXT(numbered(*between))
    made = find(pattern)(rows)
    has = [place for place, line in enumerate(rows["line"].to_pylist()) if re.search(pattern, line)]
    assert made.positions(rows.num_rows).tolist() == has
    assert made.rows["pattern"].to_pylist() == [pattern] * len(has)


@given(RANGES)
def test_what_was_not_found_is_cleaned_away(between: tuple[int, int]) -> None:
    rows = view(*VIEWED)(LOG(numbered(*between)))
    made = clean(rows)
    assert made.rows.column_names == list(KEPT)
    assert made.rows["seq"].to_pylist() == [
        row["seq"] for row in rows.to_pylist() if row["status"] == 200
    ]
    assert made.rows["seq"].to_pylist() == (between[0] + made.positions(rows.num_rows)).tolist()
