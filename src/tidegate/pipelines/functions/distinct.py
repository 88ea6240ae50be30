"""Deduplication: the first row of each key within a span of time.

With an event time, a row is a duplicate if a row of its key that was kept lies less than the span
before or after it. So of two deliveries of one event the second is dropped, however they are
ordered. What was kept is forgotten when the watermark has passed it by the span, since all rows
that it could hide would be late. Without an event time the micro-batch's clock is every row's time.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.pipelines.functions.columns import (
    Mask,
    Numbers,
    distinct_names,
    time_column,
)
from tidegate.pipelines.functions.spans import NEVER_CLOSED_US
from tidegate.pipelines.functions.times import (
    delay_us,
    duration_us,
    microseconds_of,
    time_type,
    times_of,
)
from tidegate.pipelines.identity import Identity
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update

WHAT = "distinct"
FIRST = "distinct_first"
"""The time of a row that was kept."""
UNTIL = "distinct_until"
"""When it is forgotten."""


@dataclass(frozen=True, slots=True)
class DistinctByEvent:
    """Keeps rows that lie at least the span from every other kept row of their key."""

    event_time: str
    within_us: int
    time: pa.DataType

    def update(self, batch: KeyedBatch) -> Update:
        """Keep first rows, note their times, and forget those that nothing can repeat."""
        over_us = NEVER_CLOSED_US if batch.watermark_us is None else batch.watermark_us
        time_us, present = microseconds_of(batch.rows[self.event_time])
        in_time: Mask = time_us >= over_us
        if present is not None:
            in_time &= present
        kept_us, _ = microseconds_of(batch.state[FIRST])
        until_us, _ = microseconds_of(batch.state[UNTIL])

        row = np.flatnonzero(in_time)
        row = row[np.lexsort((time_us[row], batch.row_key[row]))]
        near = Moments.of(batch.state_key, kept_us, time_us[row], self.within_us)
        row = row[~near.close(batch.row_key[row], time_us[row])]
        row = np.sort(row[apart(batch.row_key[row], time_us[row], self.within_us)])

        number, first_us = batch.row_key[row], time_us[row]
        gone = np.flatnonzero(until_us <= over_us)
        return Update(
            output=batch.rows.take(pa.array(row)),
            upserts=self._state(batch, number, first_us).append_column(
                UNTIL, times_of(first_us + self.within_us, self.time)
            ),
            upsert_key=number,
            drops=self._state(batch, batch.state_key[gone], kept_us[gone]),
            drop_key=batch.state_key[gone],
            late=~in_time,
        )

    def _state(self, batch: KeyedBatch, number: Numbers, first_us: Numbers) -> pa.Table:
        keys = batch.keys.take(pa.array(number))
        return keys.append_column(FIRST, times_of(first_us, self.time))


@dataclass(frozen=True, slots=True)
class DistinctByArrival:
    """Keeps the first row of a key that arrives, and none for the span after it."""

    within_us: int

    def update(self, batch: KeyedBatch) -> Update:
        """Keep the first row of every key that has none in the state."""
        until_us, _ = microseconds_of(batch.state[UNTIL])
        over = until_us <= batch.at_us
        held = np.zeros(batch.keys.num_rows, dtype=np.bool_)
        held[batch.state_key[~over]] = True
        number, first = np.unique(batch.row_key, return_index=True)
        new = ~held[number]
        number, first = number[new], np.sort(first[new])

        returns = np.zeros(batch.keys.num_rows, dtype=np.bool_)
        returns[number] = True
        gone = batch.state_key[over]
        gone = gone[~returns[gone]]
        until = np.full(len(number), batch.at_us + self.within_us)
        return Update(
            output=batch.rows.take(pa.array(first)),
            upserts=batch.keys.take(pa.array(number)).append_column(UNTIL, times_of(until, _UTC)),
            upsert_key=number,
            drops=batch.keys.take(pa.array(gone)),
            drop_key=gone,
        )


_UTC = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True)
class Moments:
    """Times of keys, sorted by key and time, to be searched for a near one."""

    codes: Numbers
    key: Numbers
    at_us: Numbers
    times: Numbers
    """All times that are asked for or held, sorted. Their ranks stand for them in a code, so that a
    key and a time fit into one number."""
    within_us: int

    @classmethod
    def of(cls, key: Numbers, at_us: Numbers, asked_us: Numbers, within_us: int) -> "Moments":
        """The times of keys, and those that will be asked for."""
        times = np.unique(np.concatenate([at_us, asked_us]))
        codes = key * max(1, len(times)) + np.searchsorted(times, at_us)
        order = np.argsort(codes, kind="stable")
        return cls(codes[order], key[order], at_us[order], times, within_us)

    def close(self, key: Numbers, at_us: Numbers) -> Mask:
        """Whether a time of the same key lies less than the span before or after."""
        if not len(self.codes):
            return np.zeros(len(key), dtype=np.bool_)
        code = key * max(1, len(self.times)) + np.searchsorted(self.times, at_us)
        after = np.searchsorted(self.codes, code)
        return self._near(after, key, at_us) | self._near(after - 1, key, at_us)

    def _near(self, place: Numbers, key: Numbers, at_us: Numbers) -> Mask:
        inside = (place >= 0) & (place < len(self.codes))
        there = place.clip(0, len(self.codes) - 1)
        distance_us = np.abs(self.at_us[there] - at_us)
        near: Mask = inside & (self.key[there] == key) & (distance_us < self.within_us)
        return near


def apart(key: Numbers, at_us: Numbers, within_us: int) -> Mask:
    """Of times sorted by key and time: each key's first, then each that is far from the last taken.

    Every time has a successor: the first time of its key that is not less than the span later. What
    is taken is what can be reached from the first times. The paths are walked by doubling, in as
    many steps as the longest path has binary digits.
    """
    count = len(key)
    taken = np.zeros(count + 1, dtype=np.bool_)
    if not count:
        return taken[:count]
    taken[0] = True
    taken[1:count] = key[1:] != key[:-1]
    times = np.unique(at_us)
    width = len(times) + 1
    code = key * width + np.searchsorted(times, at_us)
    later = np.searchsorted(code, key * width + np.searchsorted(times, at_us + within_us))
    jump = np.append(later, count)
    jump[:count][key[later.clip(max=count - 1)] != key] = count
    while (jump[:count] < count).any():
        taken[jump[taken]] = True
        jump = jump[jump]
    return taken[:count]


@dataclass(frozen=True, slots=True)
class Deduplication:
    """A keyed function: the first row of each key within a span of time."""

    within: str
    event_time: str | None = None
    delay: str = "0 seconds"

    def identity(self) -> Identity:
        """Which rows count as duplicates."""
        return {
            "function": WHAT,
            "within_us": duration_us(self.within, WHAT),
            "event_time": self.event_time,
        }

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """Check the columns; a state row is due when it is to be forgotten."""
        within_us = duration_us(self.within, f"{WHAT}: within")
        distinct_names([*key, FIRST, UNTIL], WHAT)
        late_us = delay_us(self.delay, f"{WHAT}: delay")
        if self.event_time is None:
            return BoundKeyed(
                update=DistinctByArrival(within_us).update,
                state=pa.schema([(UNTIL, _UTC)]),
                output=rows,
                due=UNTIL,
                clock="processing",
                identity=self.identity(),
            )
        time = time_type(time_column(rows, self.event_time, WHAT))
        return BoundKeyed(
            update=DistinctByEvent(self.event_time, within_us, time).update,
            state=pa.schema([(FIRST, time), (UNTIL, time)]),
            output=rows,
            within=FIRST,
            due=UNTIL,
            event_time=self.event_time,
            delay_us=late_us,
            identity=self.identity(),
        )
