"""Generated reports of aircraft, as ADS-B receivers collect them: position, speed and height.

Each report is a pure function of its number and the seed. The paper's reports of a week in 2017 are
a large download, so these are modelled. An aircraft makes one flight after the other. Each leads
straight away from one of a few hubs or towards it, so that the sky is crowded near hubs and empty
elsewhere. Reports come from a random aircraft each time, so some have a gap, as over an ocean.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.apps.flights.sphere import METRES_PER_DEGREE, Floats, Ints, cosine, sine, wrapped
from tidegate.pipelines.functions.times import times_of
from tidegate.workload.counter import uniforms, words
from tidegate.workload.profile import Profile

SCHEMA = (
    "seq long, flight long, at timestamp, latitude double, longitude double, altitude_m double,"
    " north_ms double, east_ms double, climb_ms double"
)
"""A position in degrees and metres, and the speed in metres per second to the north, to the east
and upwards."""
HUBS = 24
FLIGHT_S = 7_200
"""How long an aircraft is in the air; then it is on its next flight."""
CLIMB_S = 900.0
"""How far from its hub in time an aircraft reaches its cruising height."""
_SLOWEST_MS, _FASTEST_MS = 180.0, 260.0
_LOWEST_M, _LEVEL_M, _LEVELS = 8_000.0, 300.0, 14
_SOUTHMOST, _NORTHMOST = -45.0, 50.0
"""Latitudes of hubs. A flight goes no further than 17 degrees, so none reaches a pole."""
_DIGITS = 1e5
"""Positions are reported to a hundred-thousandth of a degree, about a metre."""
_AIRCRAFT, _PHASE, _HUB, _HEADING, _SPEED, _LEVEL, _WAY, _LATITUDE, _LONGITUDE = range(61, 70)
"""The streams of random numbers of this file."""


@dataclass(frozen=True, slots=True)
class Tracks:
    """The stream of reports."""

    rate: Profile
    """When each report was sent: its event time, which no clock changes."""
    aircraft: int
    seed: int

    def table(self, seq: Ints) -> pa.Table:
        """The reports with these numbers. Any part of the stream can be made alone."""
        at_us = self.rate.arrival_us(seq)
        one = (words(seq, self.seed, _AIRCRAFT) % np.uint64(self.aircraft)).astype(np.int64)
        since_us = at_us + (self._drawn(one, _PHASE) * FLIGHT_S * 1e6).astype(np.int64)
        number, into_us = np.divmod(since_us, FLIGHT_S * 1_000_000)
        flight = number * self.aircraft + one
        return pa.table(
            {
                "seq": seq,
                "flight": flight,
                "at": times_of(at_us, pa.timestamp("us", "UTC")),
                **self._motion(flight, into_us / 1e6),
            }
        )

    def _motion(self, flight: Ints, into_s: Floats) -> dict[str, Floats]:
        """Where a flight is so many seconds after its start, and how it moves."""
        hub = (self._drawn(flight, _HUB) ** 2 * HUBS).astype(np.int64)  # the first have most
        north, south = _NORTHMOST, _SOUTHMOST
        hub_latitude = south + (north - south) * self._drawn(hub, _LATITUDE)
        hub_longitude = 360.0 * self._drawn(hub, _LONGITUDE) - 180.0
        departs = self._drawn(flight, _WAY) < 0.5
        towards = np.where(departs, 1.0, -1.0)
        away_s = np.where(departs, into_s, FLIGHT_S - into_s)
        heading = 360.0 * self._drawn(flight, _HEADING)
        speed = _SLOWEST_MS + (_FASTEST_MS - _SLOWEST_MS) * self._drawn(flight, _SPEED)
        cruising = _LOWEST_M + _LEVEL_M * np.floor(_LEVELS * self._drawn(flight, _LEVEL))
        per_s = speed / METRES_PER_DEGREE  # a flight is a straight line on a map of degrees
        eastwards = per_s * sine(heading) / cosine(hub_latitude)
        latitude = hub_latitude + per_s * cosine(heading) * away_s
        longitude = wrapped(hub_longitude + eastwards * away_s)
        climbing = away_s < CLIMB_S
        return {
            "latitude": _rounded(latitude, _DIGITS),
            "longitude": _rounded(longitude, _DIGITS),
            "altitude_m": _rounded(cruising * np.minimum(away_s / CLIMB_S, 1.0), 1.0),
            "north_ms": _rounded(towards * speed * cosine(heading), 10.0),
            "east_ms": _rounded(towards * eastwards * METRES_PER_DEGREE * cosine(latitude), 10.0),
            "climb_ms": _rounded(np.where(climbing, towards * cruising / CLIMB_S, 0.0), 10.0),
        }

    def _drawn(self, numbers: Ints, stream: int) -> Floats:
        """A number in [0, 1) for each aircraft, flight or hub."""
        return uniforms(words(numbers, self.seed, stream))


def report_map(tracks: Tracks) -> Callable[[pa.Table], pa.Table]:
    """The first step of the pipeline: row numbers become reports."""

    def report(rows: pa.Table) -> pa.Table:
        return tracks.table(rows["seq"].to_numpy())

    return report


def _rounded(values: Floats, digits: float) -> Floats:
    rounded: Floats = np.rint(values * digits) / digits
    return rounded
