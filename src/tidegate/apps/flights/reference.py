"""Pairs of close flights by brute force, and the comparison with a run.

Cells, windows and groups of the operators are not used here: for each tick the last report of every
flight is looked up, and every flight is compared with every other one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.apps.application import Verdict
from tidegate.apps.event_progress import EventProgress
from tidegate.apps.flights.options import FlightOptions
from tidegate.apps.flights.predict import predicted
from tidegate.apps.flights.sphere import Ints
from tidegate.apps.flights.tracks import Tracks
from tidegate.pipelines.functions.times import microseconds_of

Pairs = dict[tuple[int, int], float]
"""The distance of two flights in metres, the one with the lower number first."""


@dataclass(frozen=True, slots=True)
class AllReports:
    """All reports of a run, in their order."""

    rows: pa.Table
    options: FlightOptions

    @classmethod
    def of(cls, tracks: Tracks, arrived: int, options: FlightOptions) -> "AllReports":
        """Make them again."""
        return cls(tracks.table(np.arange(arrived, dtype=np.int64)), options)

    @property
    def at_us(self) -> Ints:
        """When each report was sent."""
        return microseconds_of(self.rows["at"])[0]

    def ticks(self) -> range:
        """The ticks at which there are reports in the window."""
        if not self.rows.num_rows:
            return range(0)
        every_us = self.options.every_s * 1_000_000
        first, last = int(self.at_us[0]) // every_us, int(self.at_us[-1]) // every_us
        return range(first + 1, last + 1 + self.options.window_s // self.options.every_s)

    def last(self, tick: int) -> dict[int, int]:
        """For each flight the number of its last report in the window that ends at a tick."""
        end_us = tick * self.options.every_s * 1_000_000
        begin_us = end_us - self.options.window_s * 1_000_000
        inside = np.flatnonzero((self.at_us >= begin_us) & (self.at_us < end_us))
        flights = self.rows["flight"].to_numpy()[inside]
        return dict(zip(flights.tolist(), inside.tolist(), strict=True))

    def pairs(self, tick: int) -> Pairs:
        """All close pairs at a tick."""
        last = sorted(self.last(tick).items())
        flights = [flight for flight, _ in last]
        reports = self.rows.take(pa.array([seq for _, seq in last], pa.int64()))
        moment_us = (tick * self.options.every_s + self.options.ahead_s) * 1_000_000
        where = predicted(reports, np.full(len(last), moment_us, dtype=np.int64))
        found: Pairs = {}
        for place in range(len(flights)):
            apart = where[place + 1 :] - where[place]
            square = (apart * apart).sum(axis=1)
            for nth in np.flatnonzero(square < self.options.near_m**2).tolist():
                other = flights[place + 1 + nth]
                found[flights[place], other] = math.sqrt(int(square[nth]))
        return found


def judged(
    reports: AllReports,
    emitted: pa.Table | None,
    state: pa.Table,
    arrived: int,
    progress: EventProgress,
) -> Verdict:
    """Compare the pairs of all ticks that are over, and the reports that open windows have."""
    still_open = _open_windows(state, reports.options)
    told, twice = _by_tick(emitted)
    over = [tick for tick in reports.ticks() if tick not in still_open]
    expected = {tick: reports.pairs(tick) for tick in over}
    faults = []
    if twice:
        faults.append(f"{twice} pairs were emitted twice")
    if wrong := sum(told.get(tick, {}) != pairs for tick, pairs in expected.items()):
        faults.append(f"{wrong} ticks have other pairs than by brute force")
    if told.keys() - set(over):
        faults.append("some pairs were emitted before their window was over")
    if wrong := sum(last != reports.last(tick) for tick, last in still_open.items()):
        faults.append(f"{wrong} open windows have other reports than the last ones")
    if still_open and over and min(still_open) < max(over):
        faults.append("a window was left open though a later one is over")
    every_us = reports.options.every_s * 1_000_000
    faults += progress.faults(
        (tick * every_us for tick in reports.ticks()),
        (tick * every_us for tick in still_open),
        every_us=every_us,
        size_us=reports.options.window_s * 1_000_000,
    )
    count = sum(map(len, expected.values()))
    return Verdict(
        correct=not faults,
        said=f"{count:,} pairs of close flights at {len(over)} ticks, of {arrived:,} reports: "
        + ("; ".join(faults) if faults else "as by brute force"),
        figures={
            "reports": float(arrived),
            "ticks": float(len(over)),
            "pairs": float(count),
            "emitted": float(sum(map(len, told.values()))),
            "flights": float(max((len(reports.last(tick)) for tick in over), default=0)),
        },
    )


def _by_tick(rows: pa.Table | None) -> tuple[dict[int, Pairs], int]:
    """The emitted pairs of each tick, and how many are there twice."""
    found: dict[int, Pairs] = {}
    for row in [] if rows is None else rows.to_pylist():
        pairs = found.setdefault(row["tick"], {})
        pairs[row["flight"], row["other"]] = row["distance_m"]
    told = 0 if rows is None else int(rows.num_rows)
    return found, told - sum(map(len, found.values()))


def _open_windows(state: pa.Table, options: FlightOptions) -> Mapping[int, dict[int, int]]:
    """The last report of each flight in the windows that the state still has, by their tick."""
    end_us, _ = microseconds_of(state["window_end"])
    ticks = (end_us // (options.every_s * 1_000_000)).tolist()
    found: dict[int, dict[int, int]] = {}
    for tick, flight, seq in zip(
        ticks, state["flight"].to_pylist(), state["seq"].to_pylist(), strict=True
    ):
        found.setdefault(tick, {})[flight] = seq
    return found
