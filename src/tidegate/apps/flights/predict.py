"""Where each flight will be: its last report of the window, carried on in a straight line."""

import numpy as np
import pyarrow as pa

from tidegate.apps.flights.sphere import Ints, moved, places
from tidegate.pipelines.functions.times import microseconds_of

REPORT = ("at", "latitude", "longitude", "altitude_m", "north_ms", "east_ms", "climb_ms")
"""The columns of a report that a prediction needs."""


def predicted(reports: pa.Table, moment_us: Ints) -> Ints:
    """For each report the place of its flight at a moment, in metres from the globe's centre."""
    at_us, _ = microseconds_of(reports["at"])
    passed_s = (moment_us - at_us) / 1e6
    latitude, longitude, altitude_m, north_ms, east_ms, climb_ms = (
        reports[name].to_numpy() for name in REPORT[1:]
    )
    latitude, longitude = moved(latitude, longitude, north_ms * passed_s, east_ms * passed_s)
    return places(latitude, longitude, np.maximum(altitude_m + climb_ms * passed_s, 0.0))
