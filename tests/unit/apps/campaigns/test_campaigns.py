"""The advertising pipeline without Spark: events, views, windows, and what the verifier finds."""

import itertools
import json
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.keyed_operator import Operator
from tidegate.apps.campaigns.events import FIRST_MS, LATEST_MS, AdEvents, event_map
from tidegate.apps.campaigns.identifiers import ADS, campaign_of_ads, identifiers
from tidegate.apps.campaigns.operators import join, parse, views_in_windows
from tidegate.apps.campaigns.options import CampaignOptions, campaign_options
from tidegate.apps.campaigns.reference import compare, expected_views, views_of
from tidegate.apps.event_progress import EventProgress
from tidegate.errors import AskedWrongly
from tidegate.workload.parse import parse_profile

SMALL = CampaignOptions(campaigns=3, ads=2, window_s=2)
EVENTS = AdEvents(parse_profile("constant:40"), SMALL, seed=5)


def numbered(*numbers: int) -> pa.Table:
    return pa.table({"seq": pa.array(numbers, pa.int64())})


@given(st.integers(0, 2**40), st.integers(0, 2**31))
def test_an_event_does_not_depend_on_its_neighbours(first: int, seed: int) -> None:
    events = AdEvents(EVENTS.profile, SMALL, seed)
    together = events.texts(np.arange(first, first + 3)).to_pylist()
    assert together == [events.texts(np.array([first + n]))[0].as_py() for n in range(3)]


def test_events_have_yahoos_fields() -> None:
    made = [json.loads(text) for text in EVENTS.texts(np.arange(3000)).to_pylist()]
    names = ["user_id", "page_id", "ad_id", "ad_type", "event_type", "event_time", "ip_address"]
    assert all(list(event) == names for event in made)
    types, counts = np.unique([event["event_type"] for event in made], return_counts=True)
    assert types.tolist() == ["click", "purchase", "view"]
    np.testing.assert_allclose(counts / 3000, 1 / 3, atol=0.03)
    assert {event["ad_id"] for event in made} == set(identifiers(ADS, 6, 5).to_pylist())


def test_events_are_out_of_order_but_never_later_than_the_windows_wait() -> None:
    numbers = np.arange(2000)
    happened = EVENTS.times_ms(numbers)
    reached = FIRST_MS + EVENTS.profile.arrival_us(numbers) // 1000
    assert (happened <= reached).all()
    assert (reached - happened).max() < LATEST_MS
    assert (np.diff(happened) < 0).mean() > 0.3


def test_each_ad_belongs_to_one_campaign() -> None:
    table = campaign_of_ads(CampaignOptions(), 1)
    ads, campaigns = table["ad"].to_pylist(), table["campaign"].to_pylist()
    assert len(set(ads)) == 1000
    assert len(set(campaigns)) == 100
    assert len(set(zip(ads, campaigns, strict=True))) == 1000
    assert not table["ad"].equals(campaign_of_ads(CampaignOptions(), 2)["ad"])


def test_only_views_are_parsed_and_joined() -> None:
    rows = event_map(EVENTS)(numbered(*range(50)))
    events = [json.loads(text) for text in rows["event"].to_pylist()]
    views = parse(rows)
    wanted = [event for event in events if event["event_type"] == "view"]
    assert views.rows["ad"].to_pylist() == [event["ad_id"] for event in wanted]
    assert views.positions(50).tolist() == [place for place, e in enumerate(events) if e in wanted]
    joined = join(SMALL, 5)(views.rows)
    owners = dict(zip(*campaign_of_ads(SMALL, 5).to_pydict().values(), strict=True))
    assert joined.rows["campaign"].to_pylist() == [owners[event["ad_id"]] for event in wanted]
    at_ms = joined.rows["at"].cast(pa.int64()).to_numpy() // 1000
    assert at_ms.tolist() == [event["event_time"] for event in wanted]


def test_a_view_of_an_unknown_ad_is_dropped() -> None:
    known = identifiers(ADS, 6, 5)[0].as_py()
    at = pa.array([1, 2, 3], pa.timestamp("us", "UTC"))
    made = join(SMALL, 5)(pa.table({"ad": ["nobody's", known, None], "at": at}))
    assert made.positions(3).tolist() == [1]
    assert made.rows["at"].to_pylist() == at[1:2].to_pylist()


@settings(deadline=None, max_examples=15)
@given(st.lists(st.integers(0, 400), max_size=5))
def test_windows_are_counted_once_however_the_stream_is_cut(cuts: list[int]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        counter = Operator(Path(directory), views_in_windows(SMALL), "campaign")
        closed = []
        for first, end in itertools.pairwise([0, *sorted([*cuts, 380]), 400]):
            views = parse(event_map(EVENTS)(numbered(*range(first, end)))).rows
            closed.append(counter.run(join(SMALL, 5)(views).rows))
        expected = expected_views(EVENTS, 400)
        found = compare(
            pa.concat_tables(closed), counter.state(), expected, 400, counter.progress, SMALL
        )
    assert found.correct, found.said
    assert found.figures["closed_windows"] >= 9
    assert found.figures["views"] == expected.total() > 100


def test_wrong_windows_are_found() -> None:
    table = campaign_of_ads(SMALL, 5)
    owners = dict(zip(*table.to_pydict().values(), strict=True))
    expected = views_of(EVENTS.texts(np.arange(100)).to_pylist(), owners, 2)

    def rows(counts) -> pa.Table:
        starts = pa.array([start for _, start in counts], pa.timestamp("ms", "UTC"))
        names = pa.array([name for name, _ in counts], pa.string())
        views = pa.array(counts.values(), pa.int64())
        return pa.table({"campaign": names, "window_start": starts, "count": views})

    def judged(closed, still_open, before_us=None):
        newest_us = 1000 * max(start for _, start in expected)
        progress = EventProgress(newest_us, before_us)
        return compare(closed, still_open, expected, 100, progress, SMALL)

    none = rows({})
    assert judged(rows(expected), none).correct
    assert judged(None, rows(expected)).correct, "all may have come in one batch"
    first_ms = min(start for _, start in expected)
    closed_us = 1000 * (first_ms + 2000 + LATEST_MS)
    assert judged(None, rows(expected), closed_us - 1).correct
    never = judged(None, rows(expected), closed_us)
    assert not never.correct and "not closed at 1 times" in never.said
    one = next(iter(expected))
    part = {one: expected[one]}
    assert "1 windows were told twice" in judged(rows(expected), rows(part)).said
    wrong = judged(rows(expected | {one: expected[one] + 1}), none)
    assert "1 windows have a wrong count" in wrong.said
    assert not wrong.correct
    missing = {window: views for window, views in expected.items() if window != one}
    assert not judged(rows(missing), none).correct


def test_options_are_read_and_checked() -> None:
    assert campaign_options({"ads": "7", "window_s": "5"}) == CampaignOptions(ads=7, window_s=5)
    for extra, message in [
        ({"ads": "0"}, "ads=0: give 1 to 1000"),
        ({"campaigns": "100000", "ads": "11"}, "campaigns times ads=1100000: give 1 to 1000000"),
        ({"window_s": "x"}, "expected a whole number"),
    ]:
        with pytest.raises(AskedWrongly, match=message):
            campaign_options(extra)
