"""Places on the globe in whole metres from its centre, so that distances are exact.

In these coordinates there is no date line and no pole, and a distance is the same straight line
everywhere. Whole numbers are compared without rounding. Sine and cosine are polynomials here,
because only sums and products are the same to the last bit on every machine and for every length of
an array.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

RADIUS_M = 6_371_000.0
METRES_PER_DEGREE = RADIUS_M * np.pi / 180.0
_TERMS = 8
"""Terms of the series of the sine: enough for an error of far less than a millimetre."""


def sine(degrees: Floats) -> Floats:
    """The sine of angles of up to a turn in either direction."""
    turned = degrees - 360.0 * np.rint(degrees / 360.0)
    folded = np.where(np.abs(turned) > 90.0, np.copysign(180.0, turned) - turned, turned)
    x = folded * (np.pi / 180.0)
    square = x * x
    total = np.ones_like(x)
    for term in range(_TERMS, 0, -1):
        total = 1.0 - total * square / (2 * term * (2 * term + 1))
    return x * total


def cosine(degrees: Floats) -> Floats:
    """The cosine of angles of up to a turn in either direction."""
    return sine(degrees + 90.0)


def places(latitude: Floats, longitude: Floats, altitude_m: Floats) -> Ints:
    """For each place a row of three whole numbers: metres from the centre of the globe."""
    radius = RADIUS_M + altitude_m
    across = radius * cosine(latitude)
    metres = (across * cosine(longitude), across * sine(longitude), radius * sine(latitude))
    return np.stack([np.rint(one).astype(np.int64) for one in metres], axis=1)


def moved(
    latitude: Floats, longitude: Floats, north_m: Floats, east_m: Floats
) -> tuple[Floats, Floats]:
    """Latitude and longitude after a short way to the north and to the east."""
    return (
        latitude + north_m / METRES_PER_DEGREE,
        wrapped(longitude + east_m / (METRES_PER_DEGREE * cosine(latitude))),
    )


def wrapped(longitude: Floats) -> Floats:
    """Longitudes from -180 to 180 degrees."""
    return longitude - 360.0 * np.rint(longitude / 360.0)
