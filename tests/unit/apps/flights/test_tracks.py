"""Reports are functions of their number, and belong to flights that keep their course."""

import numpy as np
import pytest

from tidegate.apps.flights.options import flight_options
from tidegate.apps.flights.predict import predicted
from tidegate.apps.flights.tracks import Tracks
from tidegate.errors import AskedWrongly
from tidegate.pipelines.functions.times import microseconds_of
from tidegate.workload.profile import constant

TRACKS = Tracks(constant(100), 200, seed=5)


def test_any_part_can_be_made_alone() -> None:
    whole = TRACKS.table(np.arange(2000))
    assert whole.slice(700, 50).equals(TRACKS.table(np.arange(700, 750)))
    assert TRACKS.table(np.arange(0)).schema == whole.schema


def test_positions_are_possible() -> None:
    rows = TRACKS.table(np.arange(0, 2_000_000, 97))  # more than five hours
    assert np.abs(rows["latitude"].to_numpy()).max() < 70
    assert np.abs(rows["longitude"].to_numpy()).max() <= 180
    altitude_m = rows["altitude_m"].to_numpy()
    assert altitude_m.min() >= 0
    assert altitude_m.max() < 12_000
    speed = np.hypot(rows["north_ms"].to_numpy(), rows["east_ms"].to_numpy())
    assert speed.min() > 150
    assert speed.max() < 350
    flights = np.unique(rows["flight"].to_numpy())
    assert 3 * 200 <= len(flights) <= 5 * 200


def test_a_flight_is_where_its_last_report_said_it_would_be() -> None:
    rows = TRACKS.table(np.arange(20_000))
    at_us, _ = microseconds_of(rows["at"])
    flight = rows["flight"].to_numpy()
    order = np.lexsort((at_us, flight))
    rows, at_us, flight = rows.take(order), at_us[order], flight[order]
    here = predicted(rows, at_us)
    ahead = predicted(rows.slice(0, len(rows) - 1), at_us[1:])
    same = (flight[1:] == flight[:-1]) & (np.diff(at_us) < 60_000_000)
    apart_m = np.sqrt(((ahead - here[1:]) ** 2).sum(axis=1))[same]
    # Directions are rounded, and a straight line on a map is not one on the globe.
    assert same.sum() > 15_000
    assert np.quantile(apart_m, 0.99) < 250
    assert np.median(apart_m) < 20


@pytest.mark.parametrize(
    "extra",
    [{"aircraft": "0"}, {"near_km": "0"}, {"ahead_s": "-1"}, {"every_s": "0"}, {"window_s": "7"}],
)
def test_options_that_are_refused(extra: dict[str, str]) -> None:
    (name,) = extra
    with pytest.raises(AskedWrongly, match=f"{name}="):
        flight_options(extra)
