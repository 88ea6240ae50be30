"""Windows and sessions against brute force, with rows late, out of order and without a time."""

import datetime as dt
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.keyed_store import SHARDS, Store
from tidegate.errors import AskedWrongly
from tidegate.pipelines import functions as tg

KEY = pa.schema([("k", pa.string())])
ROWS = pa.schema([*KEY, ("timestamp", pa.timestamp("us", "UTC")), ("v", pa.int64())])
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
WINDOWED = tg.aggregate(n=tg.count(), total=tg.sum("v"), last=tg.latest("v"))
JOINED = tg.aggregate(n=tg.count(), total=tg.sum("v"), last=tg.max("v"))

row = st.tuples(
    st.sampled_from([None, "a", "b"]),
    st.none() | st.integers(-20, 60),  # seconds since the epoch
    st.none() | st.integers(-9, 9),
)
batches = st.lists(
    st.tuples(st.lists(row, max_size=8), st.integers(1, 2), st.integers(0, 99)),
    min_size=1,
    max_size=6,
)


def seconds(moment: dt.datetime) -> int:
    return round((moment - EPOCH).total_seconds())


def windowed(rows: list[tuple]) -> tuple:
    """What `WINDOWED` tells of rows (time, value) in their order."""
    n, total, _ = joined(rows)
    last = None
    for t, v in rows:
        if last is None or t >= last[0]:
            last = (t, v)
    return n, total, last and last[1]


def joined(rows: list[tuple]) -> tuple:
    """What `JOINED` tells of rows (time, value); their order does not matter."""
    values = [v for _, v in rows if v is not None]
    return len(rows), sum(values) if values else None, max(values, default=None)


class Replay:
    """Runs batches through the store and keeps what a brute-force model needs to know."""

    def __init__(self, bound, directory: str, delay: int):
        self.store, self.bound = Store(Path(directory), bound, KEY), bound
        self.delay, self.newest, self.batch_id = delay, None, 0

    @property
    def watermark(self):
        return -(10**9) if self.newest is None else self.newest - self.delay

    def run(self, rows, tasks, seed):
        """Output as {(key, start, end): results} and the number of late rows."""
        table = pa.Table.from_pylist(
            [
                {
                    "k": k,
                    "timestamp": None if t is None else EPOCH + dt.timedelta(seconds=t),
                    "v": v,
                }
                for k, t, v in rows
            ],
            ROWS,
        )
        route = np.random.default_rng(seed).integers(0, tasks, SHARDS).tolist()
        answer = self.store.run(self.batch_id, table, route, list(range(tasks)))
        self.batch_id += 1
        times = [t for _, t, _ in rows if t is not None]
        if times:
            self.newest = max(times) if self.newest is None else max(self.newest, *times)
        assert answer["output"].schema == self.bound.output
        return self.spans(answer["output"]), answer["late_rows"]

    def state(self):
        return self.spans(self.store.state(self.batch_id - 1))

    def spans(self, table: pa.Table) -> dict:
        start, end = self.bound.within, self.bound.due
        rows = table.to_pylist()
        found = {
            (r["k"], seconds(r[start]), seconds(r[end])): (r["n"], r["total"], r["last"])
            for r in rows
        }
        assert len(found) == len(rows)
        return found


def windows_of(t: int, every: int, size: int) -> list[int]:
    return [s for s in range(-200, 200) if s % every == 0 and s <= t < s + size]


@settings(max_examples=25, deadline=None)
@given(
    batches,
    st.sampled_from([(10, 10), (5, 15), (10, 14), (7, 7)]),
    st.sampled_from([0, 8]),
    st.sampled_from(["close", "update"]),
)
def test_windows_are_what_brute_force_gives(batches, every_size, delay, emit):
    every, size = every_size
    bound = tg.window(
        WINDOWED, every=f"{every} seconds", size=f"{size}s", delay=f"{delay} seconds", emit=emit
    ).bind(ROWS, ("k",))
    state: dict[tuple, list] = {}
    with tempfile.TemporaryDirectory() as directory:
        replay = Replay(bound, directory, delay)
        for rows, tasks, seed in batches:
            watermark, touched, late = replay.watermark, set(), 0
            for k, t, v in rows:
                starts = [] if t is None else windows_of(t, every, size)
                still_open = [(k, s, s + size) for s in starts if s + size > watermark]
                late += not still_open
                for span in still_open:
                    state.setdefault(span, []).append((t, v))
                    touched.add(span)
            closed = {
                span: windowed(state.pop(span)) for span in list(state) if span[2] <= watermark
            }
            changed = {span: windowed(state[span]) for span in touched}
            output, late_rows = replay.run(rows, tasks, seed)
            assert output == (closed if emit == "close" else changed)
            assert late_rows == late
            assert replay.state() == {span: windowed(rows) for span, rows in state.items()}


@settings(max_examples=20, deadline=None)
@given(
    batches,
    st.sampled_from([3, 10]),
    st.sampled_from([0, 8]),
    st.sampled_from(["close", "update"]),
)
def test_sessions_are_what_brute_force_gives(batches, gap, delay, emit):
    bound = tg.sessions(JOINED, gap=f"{gap} seconds", delay=f"{delay} s", emit=emit).bind(
        ROWS, ("k",)
    )
    state: dict[tuple, list] = {}
    with tempfile.TemporaryDirectory() as directory:
        replay = Replay(bound, directory, delay)
        for rows, tasks, seed in batches:
            watermark, late = replay.watermark, 0
            before = dict(state)
            for k, t, v in rows:  # one row after the other: join all sessions that it touches
                if t is None or t + gap <= watermark:
                    late += 1
                    continue
                start, end, members = t, t + gap, []
                for span in sorted(s for s in state if s[0] == k and s[1] < end and start < s[2]):
                    members += state.pop(span)
                    start, end = min(start, span[1]), max(end, span[2])
                state[k, start, end] = [*members, (t, v)]
            over = [span for span in state if span[2] <= watermark]
            closed = {span: joined(state.pop(span)) for span in over}
            changed = {span: rows for span, rows in state.items() if before.get(span) != rows}
            output, late_rows = replay.run(rows, tasks, seed)
            expected = closed if emit == "close" else {s: joined(r) for s, r in changed.items()}
            assert output == expected
            assert late_rows == late
            assert replay.state() == {s: joined(r) for s, r in state.items()}


def at(k: str, second: int, v: int | None = 1) -> tuple:
    return k, second, v


def test_a_window_closes_without_a_row_of_its_key(tmp_path):
    bound = tg.window(WINDOWED, every="10 seconds").bind(ROWS, ("k",))
    replay = Replay(bound, str(tmp_path), 0)
    assert replay.run([at("a", 3), at("b", 12)], 1, 0) == ({}, 0)
    assert replay.run([], 2, 1) == ({("a", 0, 10): (1, 1, 1)}, 0)
    assert replay.run([at("a", 9)], 2, 2) == ({}, 1)
    assert replay.state() == {("b", 10, 20): (1, 1, 1)}


def test_a_window_is_over_when_the_watermark_is_exactly_at_its_end(tmp_path):
    bound = tg.window(WINDOWED, every="10 seconds").bind(ROWS, ("k",))
    replay = Replay(bound, str(tmp_path), 0)
    replay.run([at("a", 3), at("b", 10)], 1, 0)
    assert replay.run([at("a", 9), at("a", 10)], 1, 0) == ({("a", 0, 10): (1, 1, 1)}, 1)
    assert replay.state() == {("a", 10, 20): (1, 1, 1), ("b", 10, 20): (1, 1, 1)}


def test_a_session_is_over_when_the_watermark_is_exactly_at_its_end(tmp_path):
    bound = tg.sessions(JOINED, gap="10 seconds").bind(ROWS, ("k",))
    replay = Replay(bound, str(tmp_path), 0)
    replay.run([at("a", 0), at("b", 10)], 1, 0)
    assert replay.run([at("c", 0), at("c", 1)], 1, 0) == ({("a", 0, 10): (1, 1, 1)}, 1)
    assert replay.state() == {("b", 10, 20): (1, 1, 1), ("c", 1, 11): (1, 1, 1)}


def test_a_late_bridge_joins_two_open_sessions_and_an_end_is_told_once(tmp_path):
    bound = tg.sessions(JOINED, gap="10 seconds", delay="1 minute").bind(ROWS, ("k",))
    replay = Replay(bound, str(tmp_path), 60)
    replay.run([at("a", 0, 1), at("a", 18, 2)], 1, 0)
    assert replay.state() == {("a", 0, 10): (1, 1, 1), ("a", 18, 28): (1, 2, 2)}
    replay.run([at("a", 9, 5)], 1, 0)
    assert replay.state() == {("a", 0, 28): (3, 8, 5)}
    replay.run([at("b", 88)], 1, 0)
    assert replay.run([], 1, 0) == ({("a", 0, 28): (3, 8, 5)}, 0)
    assert replay.run([], 1, 0) == ({}, 0)
    assert replay.state() == {("b", 88, 98): (1, 1, 1)}


def test_events_exactly_one_gap_apart_are_two_sessions(tmp_path):
    bound = tg.sessions(JOINED, gap="10 seconds").bind(ROWS, ("k",))
    replay = Replay(bound, str(tmp_path), 0)
    replay.run([at("a", 0), at("a", 10), at("a", 19)], 1, 0)
    assert replay.state() == {("a", 0, 10): (1, 1, 1), ("a", 10, 29): (2, 2, 1)}


def test_a_row_that_leaves_the_top_as_it_was_still_prolongs_the_session(tmp_path):
    bound = tg.sessions(tg.top_n(1, by="v", of="v"), gap="10 seconds").bind(ROWS, ("k",))
    store = Store(tmp_path, bound, KEY)
    for batch_id, (second, v) in enumerate([(0, 7), (5, 1), (12, None)]):
        moment = EPOCH + dt.timedelta(seconds=second)
        rows = pa.Table.from_pylist([{"k": "a", "timestamp": moment, "v": v}], ROWS)
        store.run(batch_id, rows, [0] * SHARDS, [0])
    (found,) = store.state(2).to_pylist()
    assert (seconds(found["session_start"]), seconds(found["session_end"])) == (0, 22)
    assert found["top"] == [{"v": 7}]


def test_the_rows_of_a_closed_window_are_ranked(tmp_path):
    bound = tg.window(tg.top_n(2, by="v", of="v"), every="10 seconds").bind(ROWS, ("k",))
    store = Store(tmp_path, bound, KEY)
    moments = [EPOCH + dt.timedelta(seconds=s) for s in (1, 2, 3, 30)]
    rows = pa.table({"k": ["a"] * 4, "timestamp": moments, "v": [4, 9, 6, 1]}, ROWS)
    store.run(0, rows, [0] * SHARDS, [0])
    output = store.run(1, rows.slice(0, 0), [0] * SHARDS, [0])["output"].to_pylist()
    assert [(r["rank"], r["v"]) for r in output] == [(1, 9), (2, 6)]


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: tg.window(tg.count(), every="1 minut"), "did you mean 'minute'"),
        (lambda: tg.window(tg.count(), every="1 hour", size="5 min"), "shorter than every"),
        (
            lambda: tg.window(tg.count(), every="1 s", event_time="v"),
            "'v' is int64, expected",
        ),
        (lambda: tg.window(tg.count(), every="1 s", event_time="timestmp"), "mean 'timestamp'"),
        (lambda: tg.window(tg.count(), every="1 s", delay="0 parsecs"), "unknown unit"),
        (lambda: tg.window(tg.count(), every="1 s", emit="closed"), "did you mean 'close'"),
        (lambda: tg.window(tg.sum("w"), every="1 s"), "no column 'w'"),
        (lambda: tg.window("count", every="1 s"), "was given a str"),
        (lambda: tg.window(tg.count(as_="window_end"), every="1 s"), "named 'window_end'"),
        (lambda: tg.sessions(gap="0 s"), "not a positive duration"),
        (lambda: tg.sessions(gap="10 minutes", event_time="k"), "'k' is string, expected a tim"),
        (lambda: tg.sessions(tg.sessions(gap="1 s"), gap="1 s"), "was given a Sessions"),
    ],
)
def test_a_wrong_ask_is_answered_before_anything_starts(make, message):
    with pytest.raises(AskedWrongly, match=message) as error:
        make().bind(ROWS, ("k",))
    assert "\n" not in str(error.value)
