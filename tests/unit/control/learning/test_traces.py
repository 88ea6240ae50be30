"""When traced inputs are done, against a reference that follows every row."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.control.learning.sojourn import SLOT_US, mean_sojourn_s, sojourn
from tidegate.control.learning.traces import (
    ARRIVAL_SHIFT,
    STRATUM_SHIFT,
    Settled,
    TracedBatch,
    TracedInputs,
    weights,
)

NOW_US = 1_700_000_000_000_000
Row = frozenset[int]
"""A row, by the inputs that it was derived from."""


def trace(arrived_us: int, number: int = 0, stratum: int = 0) -> int:
    return arrived_us << ARRIVAL_SHIFT | stratum << STRATUM_SHIFT | number


def ids(*traces: int) -> np.ndarray:
    return np.array(traces, dtype=np.int64)


@dataclass
class World:
    """A random pipeline whose rows are followed one by one."""

    random: Random
    channels: dict[str, tuple[str, str]]
    """For each channel, its writer and its reader."""
    operators: dict[str, str]
    """What stands in front of each channel."""
    sources: list[str]
    log: dict[str, dict[int, list[Row]]] = field(default_factory=lambda: defaultdict(dict))
    read: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    batches: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    ended_us: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    arrived: int = 0
    last_us: dict[int, int] = field(default_factory=dict)
    """The reference: for each input, the end of the last batch with a row derived from it."""

    def batch(self, segment: str, *, inputs: int, closing: bool) -> TracedBatch | None:
        taken, rows = {}, []
        for channel, (_, reader) in self.channels.items():
            if reader != segment:
                continue
            start = self.read[channel]
            waiting = sorted(number for number in self.log[channel] if number >= start)
            if not waiting:
                taken[channel] = (start, start)
                continue
            end = self.random.choice(waiting) + 1
            taken[channel] = (start, end)
            rows += [row for n in waiting if n < end for row in self.log[channel][n]]
            self.read[channel] = end
        born = []
        for _ in range(inputs if segment in self.sources else 0):
            self.arrived += self.random.choice([0, 1, 700, 40_000])
            number = len(self.last_us) % 512
            stratum = self.random.randrange(3)
            born.append(trace(NOW_US + self.arrived, number, stratum))
            self.last_us[born[-1]] = 0
        rows += [frozenset([one]) for one in born]
        if not rows:
            return None
        number = self.batches[segment]
        self.batches[segment] += 1
        begun_us = max(self.ended_us[segment], NOW_US + self.arrived)
        end_us = self.ended_us[segment] = begun_us + self.random.randrange(1, 900_000)
        for row in rows:
            for one in row:
                self.last_us[one] = max(self.last_us[one], end_us)
        written: dict[str, np.ndarray] = {}
        counts: dict[str, int] = {}
        for channel, (writer, _) in self.channels.items():
            out = self._passed(self.operators[channel], rows) if writer == segment else []
            if closing and self._loops(channel):
                out = []
            if out:
                self.log[channel][number] = out
                written[channel] = ids(*(one for row in out for one in row))
                counts[channel] = len(out)
        return TracedBatch(segment, number, end_us, ids(*born), taken, written, counts)

    def _loops(self, channel: str) -> bool:
        writer, reader = self.channels[channel]
        return reader <= writer

    def _passed(self, operator: str, rows: list[Row]) -> list[Row]:
        random = self.random
        if operator == "filter":
            return [row for row in rows if random.random() < 0.4]
        if operator == "multiply" and len(rows) < 200:
            return [row for row in rows for _ in range(random.randrange(4))]
        if operator == "keyed":
            groups: dict[int, set[int]] = {}
            for row in rows:
                groups.setdefault(random.randrange(3), set()).update(row)
            return [frozenset(group) for group in groups.values() if random.random() < 0.7]
        return list(rows)


def random_world(random: Random) -> World:
    count = random.randrange(1, 5)
    names = [f"s{number}" for number in range(count)]
    channels = {f"cut{n}": (names[random.randrange(n)], names[n]) for n in range(1, count)}
    for number in range(random.randrange(3)):
        writer = random.randrange(count)
        channels[f"loop{number}"] = (names[writer], names[random.randrange(writer + 1)])
    operators = {
        name: random.choice(["filter", "multiply", "keyed"] + ["pass"] * (name[0] == "c"))
        for name in channels
    }
    sources = names[:1] + [name for name in names[1:] if random.random() < 0.2]
    return World(random, channels, operators, sources)


def counted(settled: list[Settled]) -> Counter[tuple[int, int]]:
    """Inputs by their slot of arrival and the time at which they were done."""
    found: Counter[tuple[int, int]] = Counter()
    for one in settled:
        for done in one.done:
            for slot, count in zip(done.stamps.slots, done.stamps.counts, strict=True):
                found[int(slot), done.end_us] += int(count)
    return found


@given(st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_inputs_are_done_with_the_last_row_derived_from_them(seed: int) -> None:
    random = Random(seed)
    world = random_world(random)
    segments = [f"s{number}" for number in range(4)]
    untold: dict[str, list[TracedBatch]] = defaultdict(list)
    writers = {channel: writer for channel, (writer, _) in world.channels.items()}
    followed = TracedInputs(writers, patience_s=1e6)
    settled: list[Settled] = []

    def tell(least: int) -> None:
        """Some batches of each segment: the reader's report may come before the writer's."""
        for name in random.sample(segments, len(segments)):
            told = untold[name][: random.randrange(least, len(untold[name]) + 1)]
            del untold[name][: len(told)]
            settled.extend(followed.add(told, NOW_US))

    for step in range(60):
        name = random.choice(segments)
        done = world.batch(name, inputs=random.randrange(6), closing=step > 30)
        if done is not None:
            untold[name].append(done)
        if random.random() < 0.3:
            tell(0)
    while found := [b for n in segments if (b := world.batch(n, inputs=0, closing=True))]:
        for done in found:
            untold[done.segment].append(done)
    while any(untold.values()):
        tell(0)

    expected: Counter[tuple[int, int]] = Counter()
    for one, end_us in world.last_us.items():
        expected[(one >> ARRIVAL_SHIFT) // SLOT_US, end_us] += int(weights(ids(one))[0])
    assert counted(settled) == expected
    assert followed.in_flight == 0 and followed.forgotten == 0
    if world.last_us:
        waits = [end_us - (one >> ARRIVAL_SHIFT) for one, end_us in world.last_us.items()]
        latency = sojourn([done for one in settled for done in one.done])
        assert latency is not None
        weight = weights(ids(*world.last_us))
        assert latency.mean_s == pytest.approx(float(np.average(waits, weights=weight)) / 1e6)


def test_a_segment_is_measured_from_the_hand_over_to_the_end_of_its_batch() -> None:
    followed = TracedInputs({"cut": "main"})
    first = TracedBatch("main", 0, NOW_US + 100_400, written={"cut": ids()}, rows={"cut": 30})
    second = TracedBatch("main", 1, NOW_US + 300_000, written={"cut": ids()}, rows={"cut": 10})
    third = TracedBatch("cut", 0, NOW_US + 500_000, taken={"cut": (0, 2)})
    (*_, last) = followed.add([first, second, third], NOW_US)
    assert last.segment == "cut" and last.waited is not None
    assert last.waited.stamps.rows == 40
    assert mean_sojourn_s(last.waited) == pytest.approx((30 * 0.3996 + 10 * 0.2) / 40)


def test_a_reader_that_ends_before_its_writer_is_committed_has_waited_no_time() -> None:
    followed = TracedInputs({"cut": "main"})
    one = trace(NOW_US)
    wrote = TracedBatch("main", 0, NOW_US + 90, ids(one), {}, {"cut": ids(one)}, {"cut": 1})
    read = TracedBatch("cut", 0, NOW_US + 70, taken={"cut": (0, 1)})
    assert followed.add([read], NOW_US) == []  # its rows are not known yet
    last = followed.add([wrote], NOW_US)[-1]
    assert last.waited is not None and mean_sojourn_s(last.waited) == 0.0
    assert [done.end_us for done in last.done] == [NOW_US + 90]


def test_traces_of_an_earlier_run_are_left_out_and_block_nothing() -> None:
    followed = TracedInputs({"cut": "main"})
    old = TracedBatch("cut", 7, NOW_US + 50, taken={"cut": (3, 5)})
    assert followed.add([old], NOW_US) == []
    one = trace(NOW_US)
    told = TracedBatch("main", 5, NOW_US + 90, ids(one), {}, {"cut": ids(one, trace(9))})
    settled = followed.add([told], NOW_US)
    assert [done.segment for done in settled] == ["main", "cut"]
    read = TracedBatch("cut", 8, NOW_US + 200, taken={"cut": (5, 6)})
    (last,) = followed.add([read], NOW_US)
    assert [(done.end_us, done.stamps.rows) for done in last.done] == [(NOW_US + 200, 1)]


def test_a_report_that_never_comes_is_not_waited_for_longer_than_the_patience() -> None:
    followed = TracedInputs({"cut": "main"}, patience_s=2.0)
    read = TracedBatch("cut", 0, NOW_US, taken={"cut": (0, 1)})
    assert followed.add([read], NOW_US + 1_900_000) == []
    assert len(followed.add([], NOW_US + 2_100_000)) == 1


def test_inputs_that_are_never_done_are_given_up_and_counted() -> None:
    followed = TracedInputs({"loop": "main"}, forget_s=60.0)
    one = trace(NOW_US)
    for number in range(100):
        born = ids(one) if number == 0 else ids()
        took = {"loop": (number - 1, number)} if number else {}
        at_us = NOW_US + number * 1_000_000
        followed.add([TracedBatch("main", number, at_us, born, took, {"loop": ids(one)})], at_us)
    assert followed.in_flight == 0 and followed.forgotten == 1


def test_the_number_of_inputs_in_flight_is_bounded() -> None:
    followed = TracedInputs({"cut": "main"}, most=3)
    for number in range(5):
        one = ids(trace(NOW_US + number))
        followed.add([TracedBatch("main", number, NOW_US + number, one, {}, {"cut": one})], NOW_US)
    assert followed.in_flight == 3 and followed.forgotten == 2


def test_a_hand_over_that_was_read_by_a_batch_nobody_told_of_is_given_up() -> None:
    followed = TracedInputs({"cut": "main"})
    for number in range(2):
        one = ids(trace(NOW_US, number))
        followed.add([TracedBatch("main", number, NOW_US, one, {}, {"cut": one})], NOW_US)
    (last,) = followed.add([TracedBatch("cut", 1, NOW_US + 9, taken={"cut": (1, 2)})], NOW_US)
    assert counted([last]) == {(NOW_US // SLOT_US, NOW_US + 9): 1}
    assert followed.in_flight == 0 and followed.forgotten == 1
