"""Timers go off once, at their time, for the right keys, and without reading the other state."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.keyed_store import SHARDS, Store
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update
from tidegate.spark.state.node_cache import open_layers
from tidegate.spark.state.task import TaskState

TIME = pa.timestamp("us")
ROWS = pa.schema([("k", pa.int64()), ("at", TIME), ("timer", TIME)])
KEY = pa.schema([ROWS.field("k")])
STATE = pa.schema([("n", pa.int64()), ("timer", TIME)])
OUTPUT = pa.schema([("k", pa.int64()), ("n", pa.int64())])


def remind(batch: KeyedBatch) -> Update:
    """Counts rows, and emits the count when the key's timer goes off.

    The last row of a key sets its timer. A timer that went off is cleared for odd keys, and left
    as it is for even ones: it must not go off again.
    """
    assert batch.state_due is not None or batch.watermark_us is None
    keys = batch.keys.num_rows
    due = np.zeros(keys, dtype=np.bool_)
    if batch.state_due is not None:
        due[batch.state_key[batch.state_due]] = True
    rows = np.bincount(batch.row_key, minlength=keys)
    assert ((rows > 0) | due).all(), "a key that has neither rows nor a timer that goes off"
    old = batch.aligned()
    before = old["n"].fill_null(0).to_numpy()
    odd = batch.keys["k"].to_numpy() % 2 == 1
    last = np.full(keys, -1)
    last[batch.row_key] = np.arange(len(batch.row_key))
    timer = batch.rows["timer"].combine_chunks().take(pa.array(last, mask=last < 0))
    changed = np.flatnonzero((rows > 0) | (due & odd))
    table = batch.keys.append_column("n", pa.array(before + rows)).append_column("timer", timer)
    return Update(
        output=batch.keys.append_column("n", pa.array(before)).filter(pa.array(due)),
        upserts=table.take(pa.array(changed)),
        upsert_key=changed,
    )


def bound(clock: str) -> BoundKeyed:
    event = {"event_time": "at", "delay_us": 3} if clock == "event" else {}
    return BoundKeyed(update=remind, state=STATE, output=OUTPUT, due="timer", clock=clock, **event)


class Reminders:
    """The same with a dictionary, key by key."""

    def __init__(self, clock: str) -> None:
        self.clock = clock
        self.state: dict[int, tuple[int, int | None]] = {}
        self.newest: int | None = None
        self.before: int | None = None

    def run(self, rows: list[tuple[int, int, int | None]], at_us: int) -> set[tuple[int, int]]:
        now: int | None = at_us
        if self.clock == "event":
            now = None if self.newest is None else self.newest - 3
            if now is not None and self.before is not None:
                now = max(now, self.before)
        out = set()
        for key, (n, timer) in list(self.state.items()):
            came = timer is not None and now is not None and timer <= now
            if came and (self.before is None or timer > self.before):
                out.add((key, n))
                if key % 2:
                    self.state[key] = n, None
        for key, _, timer in rows:
            if timer is not None and now is not None and timer <= now:
                timer = now + 1
            self.state[key] = self.state.get(key, (0, None))[0] + 1, timer
        if rows:
            times = [at for _, at, _ in rows]
            self.newest = max(times if self.newest is None else [*times, self.newest])
        self.before = now
        return out


some_row = st.tuples(
    st.integers(0, 7), st.integers(-10, 6), st.one_of(st.none(), st.integers(-12, 30))
)
batch_of_rows = st.tuples(
    st.lists(some_row, max_size=12),
    st.integers(0, 12),  # how far the time moves on
    st.integers(1, 4),  # tasks
    st.integers(0, 1000),  # seed of the route and of the nodes
    st.sampled_from([1, 1, 2]),  # tries before the commit
)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(batch_of_rows, min_size=4, max_size=20),
    st.sampled_from([1, 62]),
    st.sampled_from(["event", "processing"]),
)
def test_timers_go_off_as_they_would_key_by_key(batches, bits, clock):
    truth = Reminders(clock)
    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory), bound(clock), KEY, bits=bits)
        now = 100
        for batch_id, (rows, passed, tasks, seed, tries) in enumerate(batches):
            now += passed + 1
            chance = np.random.default_rng(seed)
            route = chance.integers(0, tasks, SHARDS).tolist()
            nodes = chance.integers(0, 3, tasks).tolist()
            told = [(k, now + at, None if t is None else now + t) for k, at, t in rows]
            given_ = pa.table(
                [pa.array([one[i] for one in told], pa.int64()) for i in range(3)],
                names=ROWS.names,
            ).cast(ROWS)
            ran = store.run(batch_id, given_, route, nodes, at_us=now, tries=tries)
            found = {(row["k"], row["n"]) for row in ran["output"].to_pylist()}
            assert found == truth.run(told, now)
        held = {
            row["k"]: (row["n"], None if row["timer"] is None else _us(row["timer"]))
            for row in store.state(len(batches) - 1).to_pylist()
        }
        assert held == truth.state


def _us(time) -> int:
    return int(pa.scalar(time, TIME).value)


@pytest.mark.parametrize("clock", ["event", "processing"])
def test_only_the_rows_whose_time_has_come_are_read(tmp_path, monkeypatch, clock):
    """With 20,000 timers at 20,000 different times, a batch reads the few that go off in it."""
    open_layers.clear()
    keys = 20_000
    reads = []
    plain = TaskState.batch

    def counted(self, rows, slots):
        made = plain(self, rows, slots)
        reads.append((self.reads.due_rows, self.reads.ordered_rows))
        return made

    monkeypatch.setattr(TaskState, "batch", counted)
    store = Store(tmp_path, bound(clock), KEY)
    chance = np.random.default_rng(7)
    timers = 1000 + chance.permutation(keys)
    even = np.arange(keys) * 2
    first = pa.table([even, np.zeros(keys, np.int64), timers], names=ROWS.names).cast(ROWS)
    store.run(0, first, [0] * SHARDS, [0], at_us=0)
    went_off = 0
    for batch_id in range(1, 21):
        now = 1000 + 50 * batch_id - 1
        one = [[1_000_001], [now + 3], [None]]
        rows = pa.table([pa.array(v, pa.int64()) for v in one], names=ROWS.names).cast(ROWS)
        ran = store.run(batch_id, rows, [0] * SHARDS, [0], at_us=now)
        went_off += ran["output"].num_rows
    clock_at = now if clock == "processing" else now - 50
    assert went_off == np.count_nonzero(timers <= clock_at)
    due, ordered = (sum(part) for part in zip(*reads, strict=True))
    assert due == went_off, "rows that are not due are not read"
    assert keys <= ordered <= 1.5 * keys, "all of them are sorted once, and not in every batch"
