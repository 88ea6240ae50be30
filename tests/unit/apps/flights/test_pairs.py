"""Cells and pairs, beside brute force: every close pair once, and no other."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.helpers.keyed_by_hand import KeyedByHand
from tidegate.apps.event_progress import EventProgress
from tidegate.apps.flights import near
from tidegate.apps.flights.application import tracked_reports
from tidegate.apps.flights.cells import cell_map, in_cells
from tidegate.apps.flights.near import NearPairs
from tidegate.apps.flights.options import FlightOptions
from tidegate.apps.flights.reference import AllReports, judged
from tidegate.apps.flights.tracks import Tracks
from tidegate.workload.profile import constant

PLACE = pa.schema(
    [(name, pa.int64()) for name in ("cell", "tick", "flight", "x", "y", "z")]
    + [("home", pa.bool_())]
)


def places_in_cells(where: np.ndarray, tick: np.ndarray, near_m: int) -> pa.Table:
    cell, parents, home = in_cells(where, near_m)
    columns = {name: where[parents, axis] for axis, name in enumerate("xyz")}
    columns |= {"cell": cell, "tick": tick[parents], "flight": parents, "home": home}
    return pa.table(columns)


def pairs_of(table: pa.Table) -> list[tuple[int, int, int]]:
    return sorted(zip(*(table[name].to_pylist() for name in table.column_names[:3]), strict=True))


def by_brute_force(where: np.ndarray, tick: np.ndarray, near_m: int) -> list[tuple[int, int, int]]:
    return sorted(
        (int(tick[one]), one, other)
        for one, other in combinations(range(len(where)), 2)
        if tick[one] == tick[other] and ((where[one] - where[other]) ** 2).sum() < near_m**2
    )


crowds = st.integers(0, 25).flatmap(
    lambda count: st.tuples(
        arrays(np.int64, (count, 3), elements=st.integers(-60, 60)),
        arrays(np.int64, count, elements=st.integers(0, 2)),
    )
)


@settings(deadline=None, max_examples=150)
@given(crowds, st.integers(1, 40))
def test_every_close_pair_is_found_once(crowd, near_m: int) -> None:
    where, tick = crowd
    found = KeyedByHand(NearPairs(near_m), PLACE, "cell").run(places_in_cells(where, tick, near_m))
    assert pairs_of(found) == by_brute_force(where, tick, near_m)


def test_pairs_at_the_corners_of_cells() -> None:
    """Two places on either side of every border that cells have, at each distance near it."""
    near_m = 10
    steps = np.array([-41, -40, -31, -30, -10, -9, -1, 0, 1, 9, 10, 39, 40])
    where = np.stack(np.meshgrid(steps, steps[5:9], steps[::4]), axis=-1).reshape(-1, 3)
    tick = np.zeros(len(where), dtype=np.int64)
    found = KeyedByHand(NearPairs(near_m), PLACE, "cell").run(places_in_cells(where, tick, near_m))
    assert pairs_of(found) == by_brute_force(where, tick, near_m)


def test_a_crowded_cell_is_compared_in_parts(monkeypatch) -> None:
    monkeypatch.setattr(near, "PAIRS_AT_A_TIME", 7)
    where = np.arange(150).reshape(50, 3)
    tick = np.arange(50) % 3
    found = KeyedByHand(NearPairs(60), PLACE, "cell").run(places_in_cells(where, tick, 60))
    assert pairs_of(found) == by_brute_force(where, tick, 60)


def test_no_state_is_kept() -> None:
    operator = KeyedByHand(NearPairs(60), PLACE, "cell")
    where = np.arange(30).reshape(10, 3)
    operator.run(places_in_cells(where, np.zeros(10, dtype=np.int64), 60))
    assert operator.state.num_rows == 0


OPTIONS = FlightOptions(aircraft=300, near_km=60.0, window_s=6, every_s=2, ahead_s=10)
TRACKS = Tracks(constant(100), OPTIONS.aircraft, seed=4)


class Watching:
    """All operators with their state, and what was emitted."""

    def __init__(self) -> None:
        schema = TRACKS.table(np.arange(0)).schema
        self.track = KeyedByHand(tracked_reports(OPTIONS), schema, "flight")
        self.near = KeyedByHand(NearPairs(OPTIONS.near_m), PLACE, "cell")
        self.emitted: list[pa.Table] = []
        self.arrived = 0

    def take(self, rows: int) -> None:
        reports = TRACKS.table(np.arange(self.arrived, self.arrived + rows))
        self.arrived += rows
        last = self.track.run(reports)
        self.emitted.append(self.near.run(cell_map(OPTIONS)(last).rows))

    def result(self) -> tuple[AllReports, pa.Table, pa.Table, int, EventProgress]:
        reports = AllReports.of(TRACKS, self.arrived, OPTIONS)
        emitted = pa.concat_tables(self.emitted)
        return reports, emitted, self.track.state, self.arrived, self.track.progress


@settings(deadline=None, max_examples=15)
@given(st.lists(st.integers(0, 900), min_size=1, max_size=6))
def test_cuts_do_not_matter(cuts: list[int]) -> None:
    run = Watching()
    for rows in cuts:
        run.take(rows)
    verdict = judged(*run.result())
    assert verdict.correct, verdict.said
    assert run.track.late_rows == 0


@pytest.fixture(scope="module")
def watched() -> Watching:
    run = Watching()
    for _ in range(12):
        run.take(100)  # a second each
    return run


def test_pairs_are_emitted_when_a_window_is_over(watched: Watching) -> None:
    verdict = judged(*watched.result())
    assert verdict.correct, verdict.said
    assert verdict.figures["ticks"] == 5  # after 2, 4, 6, 8 and 10 seconds
    assert verdict.figures["pairs"] > 20


def test_the_verdict_notices(watched: Watching) -> None:
    reports, emitted, state, arrived, progress = watched.result()
    place = emitted.schema.get_field_index("distance_m")
    further = emitted.set_column(
        place, "distance_m", pa.array(emitted["distance_m"].to_numpy() + 1)
    )
    early = emitted.set_column(0, "tick", pa.array(emitted["tick"].to_numpy() + 5))
    wrong = [
        (None, state),
        (emitted.slice(1), state),
        (further, state),
        (early, state),
        (pa.concat_tables([emitted, emitted.slice(0, 1)]), state),
        (emitted, state.slice(1)),
    ]
    assert [judged(reports, *one, arrived, progress).correct for one in wrong] == [False] * 6


def test_the_verdict_notices_that_nothing_is_ever_emitted() -> None:
    run = Watching()
    run.take(1200)
    reports, _, state, arrived, progress = run.result()
    assert judged(reports, None, state, arrived, progress).correct, "all came in one batch"
    several = EventProgress(progress.newest_us, 9_000_000)
    verdict = judged(reports, None, state, arrived, several)
    assert not verdict.correct and "not closed at 4 times" in verdict.said
