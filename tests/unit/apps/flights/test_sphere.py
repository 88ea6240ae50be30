"""Places and ways on the globe, beside NumPy's own trigonometry."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.apps.flights.sphere import RADIUS_M, cosine, moved, places, sine, wrapped


def haversine_m(one: tuple[float, float], other: tuple[float, float]) -> float:
    """The distance along the surface."""
    (lat, lon), (lat2, lon2) = np.radians(one), np.radians(other)
    part = np.sin((lat2 - lat) / 2) ** 2
    part += np.cos(lat) * np.cos(lat2) * np.sin((lon2 - lon) / 2) ** 2
    return float(2 * RADIUS_M * np.arcsin(np.sqrt(part)))


def test_sine_and_cosine() -> None:
    degrees = np.linspace(-720.0, 720.0, 20_001)
    assert np.abs(sine(degrees) - np.sin(np.radians(degrees))).max() < 1e-12
    assert np.abs(cosine(degrees) - np.cos(np.radians(degrees))).max() < 1e-12


def test_the_length_of_an_array_changes_nothing() -> None:
    degrees = np.linspace(-180.0, 180.0, 37)
    alone = np.concatenate([sine(degrees[place : place + 1]) for place in range(37)])
    assert sine(degrees).tobytes() == alone.tobytes()


latitudes, longitudes = st.floats(-70, 70), st.floats(-180, 180)


@given(st.tuples(latitudes, longitudes), st.tuples(latitudes, longitudes))
def test_a_straight_line_belongs_to_a_way_along_the_surface(one, other) -> None:
    where = places(*np.array([one, other]).T, np.zeros(2))
    straight_m = float(np.sqrt(((where[0] - where[1]) ** 2).sum()))
    along_m = haversine_m(one, other)
    assert straight_m == pytest.approx(2 * RADIUS_M * np.sin(along_m / 2 / RADIUS_M), abs=2.0)


@given(latitudes, longitudes, st.floats(-20_000, 20_000), st.floats(-20_000, 20_000))
def test_a_way_has_its_length(latitude, longitude, north_m, east_m) -> None:
    columns = (np.array([value]) for value in (latitude, longitude, north_m, east_m))
    there = tuple(float(column[0]) for column in moved(*columns))
    length_m = float(np.hypot(north_m, east_m))
    assert -180.0 <= there[1] <= 180.0
    assert haversine_m((latitude, longitude), there) == pytest.approx(length_m, rel=0.02, abs=1.0)


def test_longitudes_end_at_the_date_line() -> None:
    assert wrapped(np.array([-181.0, 0.0, 179.0, 200.0])).tolist() == [179.0, 0.0, 179.0, -160.0]
