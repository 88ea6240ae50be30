"""Nexmark without Spark: its events, its maps, its windows, and what the verifier finds."""

import itertools
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.keyed_operator import Operator
from tidegate.apps.catalogue import PLACES
from tidegate.apps.event_progress import EventProgress
from tidegate.apps.nexmark.currency import QUERY as Q1
from tidegate.apps.nexmark.currency import convert
from tidegate.apps.nexmark.events import (
    AUCTIONS,
    BIDS,
    FIRST_AUCTION,
    FIRST_PERSON,
    FIRST_US,
    KINDS,
    PERSONS,
    NexmarkEvents,
    kind_map,
)
from tidegate.apps.nexmark.hot_items import QUERY as Q5
from tidegate.apps.nexmark.hot_items import Hottest, first_of_equals
from tidegate.apps.nexmark.local_items import QUERY as Q3
from tidegate.apps.nexmark.new_users import QUERY as Q8
from tidegate.apps.nexmark.options import NexmarkOptions, nexmark_options
from tidegate.apps.nexmark.query import Query, answers_of, micros
from tidegate.apps.nexmark.reference import closed_by, compare, picked
from tidegate.apps.nexmark.selection import QUERY as Q2
from tidegate.apps.nexmark.selection import select
from tidegate.apps.nexmark.user_sessions import QUERY as Q11
from tidegate.apps.nexmark.windows import sessions_of, sliding
from tidegate.errors import AskedWrongly
from tidegate.pipelines.functions import count, sessions, window
from tidegate.workload.parse import parse_profile

QUERIES = [Q1, Q2, Q3, Q5, Q8, Q11]
EVENTS = NexmarkEvents(parse_profile("constant:100"), seed=3)


@given(st.integers(0, 2**40), st.integers(0, 2**31))
def test_an_event_does_not_depend_on_its_neighbours(first: int, seed: int) -> None:
    events = NexmarkEvents(EVENTS.profile, seed)
    numbers = np.arange(first, first + 60)
    for kind in KINDS:
        alone = [events.of(kind, numbers[n : n + 1]) for n in range(60)]
        assert events.of(kind, numbers).equals(pa.concat_tables(alone))


def test_kinds_have_the_benchmarks_proportions_and_numbers_without_gaps() -> None:
    tables = {kind: EVENTS.of(kind, np.arange(5000)) for kind in KINDS}
    assert [tables[kind].num_rows for kind in KINDS] == [100, 300, 4600]
    assert tables[PERSONS]["id"].to_pylist() == list(range(FIRST_PERSON, FIRST_PERSON + 100))
    assert tables[AUCTIONS]["id"].to_pylist() == list(range(FIRST_AUCTION, FIRST_AUCTION + 300))
    whole = sorted(time for t in tables.values() for time in t["timestamp"].to_pylist())
    assert len(set(whole)) == 5000
    assert whole[0].timestamp() * 1e6 == pytest.approx(FIRST_US, abs=1e6)


def test_hot_sellers_auctions_and_bidders_are_as_hot_as_in_the_benchmark() -> None:
    numbers = np.arange(200_000)
    auctions, bids = EVENTS.of(AUCTIONS, numbers), EVENTS.of(BIDS, numbers)
    seller = auctions["seller"].to_numpy() - FIRST_PERSON
    assert (seller % 100 == 0).mean() == pytest.approx(3 / 4 + 1 / 400, abs=0.01)
    auction = bids["auction"].to_numpy() - FIRST_AUCTION
    assert (auction % 100 == 0).mean() == pytest.approx(1 / 2 + 1 / 200, abs=0.01)
    bidder = bids["bidder"].to_numpy() - FIRST_PERSON
    assert (bidder % 100 == 1).mean() == pytest.approx(3 / 4 + 1 / 400, abs=0.01)
    newest = numbers[numbers % 50 >= 4] // 50 * 3 + 2
    assert (auction <= newest + 10).all() and (auction >= newest - 101).all()
    assert seller.min() >= 0 and auction.min() >= 0 and bidder.min() >= 0
    price = bids["price"].to_numpy()
    assert price.min() >= 100 and price.max() <= 100_000_000
    assert np.median(price) == pytest.approx(100_000, rel=0.05)


def test_event_time_may_pass_faster() -> None:
    fast = NexmarkEvents(EVENTS.profile, EVENTS.seed, speed=20.0)
    numbers = np.arange(1000)
    passed = EVENTS.times_us(numbers) - FIRST_US
    np.testing.assert_array_equal(fast.times_us(numbers) - FIRST_US, 20 * passed)
    assert nexmark_options({"speed": "20"}) == NexmarkOptions(speed=20.0)
    with pytest.raises(AskedWrongly, match="speed=0"):
        nexmark_options({"speed": "0"})


def test_the_hot_ones_may_change_more_often() -> None:
    numbers = np.arange(50_000)
    often = NexmarkEvents(EVENTS.profile, EVENTS.seed, hot_every=5)
    bidder = often.of(BIDS, numbers)["bidder"].to_numpy() - FIRST_PERSON
    assert (bidder % 5 == 1).mean() == pytest.approx(3 / 4 + 1 / 20, abs=0.01)
    seller = often.of(AUCTIONS, numbers)["seller"].to_numpy() - FIRST_PERSON
    hot = seller % 5 == 0
    assert len(np.unique(seller[hot])) == pytest.approx(1000 / 5, abs=2)
    assert nexmark_options({"hot_every": "5"}) == NexmarkOptions(hot_every=5)
    with pytest.raises(AskedWrongly, match="hot_every=0"):
        nexmark_options({"hot_every": "0"})


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_a_query_picks_the_columns_that_it_declares(query: Query) -> None:
    types = {"long": pa.int64(), "string": pa.string(), "timestamp": pa.timestamp("us", "UTC")}
    rows = pa.table({"seq": np.arange(200)})
    for pick in query.picks:
        made = kind_map(EVENTS, pick.kind)(rows)
        some = pick.rows(made.rows)
        declared = [column.split() for column in pick.schema.split(", ")]
        assert some.rows.schema.names == [name for name, _ in declared]
        assert some.rows.schema.types == [types[kind] for _, kind in declared]
        assert len(some.positions(made.rows.num_rows)) == some.rows.num_rows
    assert f"nexmark-{query.name}" in PLACES
    assert set(query.stretched_s) == set(query.operators)


def test_maps_are_what_the_references_say() -> None:
    bids = EVENTS.of(BIDS, np.arange(20_000))
    assert answers_of(convert(bids)) == Q1.expected([micros(bids)])
    made = select(bids)
    expected = Q2.expected([micros(bids)])
    assert answers_of(made.rows) == expected and expected.total() > 10
    assert made.rows["price"].equals(bids["price"].filter(pa.array(made.parents)))


def test_sliding_windows_are_those_that_a_time_lies_in() -> None:
    assert list(sliding(13, 10, 2)) == [12, 10, 8, 6, 4]
    assert list(sliding(14, 10, 2)) == [14, 12, 10, 8, 6]
    assert list(sliding(5, 10, 10)) == [0]


def test_sessions_end_a_gap_after_their_last_event() -> None:
    assert list(sessions_of([5, 0, 14, 25], 10)) == [(0, 24, 3), (25, 35, 1)]
    assert list(sessions_of([0, 10], 10)) == [(0, 10, 1), (10, 20, 1)]
    assert list(sessions_of([], 10)) == []


@settings(deadline=None, max_examples=8)
@given(st.lists(st.integers(0, 3000), max_size=4))
def test_windows_and_sessions_are_told_once_however_the_stream_is_cut(cuts: list[int]) -> None:
    events = NexmarkEvents(EVENTS.profile, EVENTS.seed, speed=3.0)
    counted = window(count(), every="2 seconds", size="10 seconds")
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        counts = Operator(root / "count", counted, "auction")
        hottest = Operator(root / "hottest", Hottest(), "window_start")
        spans = Operator(root / "sessions", sessions(gap="10 seconds"), "bidder")
        hot, over = [], []
        for first, end in itertools.pairwise([0, *sorted([*cuts, 2900]), 3000]):
            bids = events.of(BIDS, np.arange(first, end))
            hot.append(hottest.run(counts.run(bids.select(["auction", "timestamp"]))))
            over.append(spans.run(bids.select(["bidder", "timestamp"])))
        for query, told, progress in (
            (Q5, hot, counts.progress),
            (Q11, over, spans.progress),
        ):
            verdict = compare(query, events, 3000, pa.concat_tables(told), progress)
            assert verdict.correct, verdict.said
            assert verdict.figures["answers"] > 20
        assert hottest.state().num_rows == 0


def test_wrong_answers_are_found() -> None:
    rows = picked(Q3, EVENTS, 20_000)
    expected = Q3.expected(rows)
    assert len(expected) > 20
    names = ["id", "name", "city", "state", "id_of_auction"]

    def judged(answers: list[tuple]) -> str:
        table = pa.table([list(column) for column in zip(*answers, strict=True)], names)
        return compare(Q3, EVENTS, 20_000, table, None).said

    right = list(expected.elements())
    assert "as event by event" in judged(right)
    assert "1 are missing" in judged(right[1:])
    assert "1 are wrong or there again" in judged([*right, right[0]])
    assert "1 are missing; 1 are wrong" in judged([*right[1:], (0, "", "", "", 0)])
    assert not compare(Q3, EVENTS, 20_000, None, None).correct


def test_only_windows_that_were_closed_have_answers() -> None:
    answers = Q5.expected(picked(Q5, EVENTS, 3000))
    end_us = sorted({one[1] for one in answers})[3]
    closed = closed_by(Q5, answers, end_us)
    assert {one[1] for one in closed} == {one[1] for one in answers if one[1] <= end_us}
    assert not closed_by(Q5, answers, None)
    progress = EventProgress(None, None)
    assert compare(Q5, EVENTS, 3000, None, progress).correct, "nothing was closed"
    first = first_of_equals(answers)
    assert len(first) == len({one[:2] for one in answers})


def test_new_users_sold_in_the_window_in_which_they_came() -> None:
    persons, auctions = picked(Q8, EVENTS, 20_000)
    found = Q8.expected([persons, auctions])
    by_loops = sum(
        one["id"] == other["seller"] and one["timestamp"] // 10**7 == other["timestamp"] // 10**7
        for one in persons
        for other in auctions
    )
    assert found.total() == by_loops > 100
