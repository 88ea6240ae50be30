"""Erlang's formulas without factorials: exact to 1e-9 for a million cores, and for tiny waits.

With k cores and an offered load of a = lambda / mu, Erlang's loss B and the mean wait of an M/M/k
queue (DRS eq. 2 and 3, whose factorials overflow near k = 170) are computed from sums of positive
terms only, so nothing cancels or overflows. A value too small for a double becomes zero.

Up to 64 cores B comes from its recurrence, B(k) = a B(k-1) / (k + a B(k-1)). Beyond that, B is the
Poisson probability of k divided by that of "at most k". The probability of k is computed from the
deviance (Loader's saddle-point form), because exp(k log a - a - log k!) has lost nine digits at
k = 1,000,000. "At most k" is one minus a short series of positive terms, and at least one half.
"""

import math
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

_RECURRENCE_UP_TO = 64
_EPSILON = 2.0**-53


@nb.njit(cache=True)
def next_loss(loss: float, cores: float, load: float) -> float:
    """B(k) from B(k - 1), where `cores` is k: one step of Erlang's recurrence."""
    carried = load * loss
    return carried / (cores + carried)


@nb.njit(cache=True)
def deviance(cores: float, load: float) -> float:
    """k log(k / a) + a - k for k >= a, without cancellation when the two are close."""
    excess = cores - load
    if excess > 0.1 * (cores + load):
        return cores * math.log(cores / load) - excess
    slope = excess / (cores + load)
    total = excess * slope
    term = 2.0 * cores * slope
    square = slope * slope
    order = 1.0
    while True:
        order += 2.0
        term *= square
        grown = total + term / order
        if grown == total:
            return total
        total = grown


@nb.njit(cache=True)
def erlang_loss(cores: float, load: float) -> float:
    """Erlang's B for k cores; k is a whole number above the load a."""
    if load <= 0.0:
        return 0.0
    if cores <= _RECURRENCE_UP_TO:
        loss = 1.0
        for step in range(1, int(cores) + 1):
            loss = next_loss(loss, step, load)
        return loss
    inverse = 1.0 / cores
    square = inverse * inverse
    stirling = inverse * (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square / 1680)))
    exactly = math.exp(-stirling - deviance(cores, load)) / math.sqrt(2.0 * math.pi * cores)
    beyond = 0.0
    term = 1.0
    following = cores
    while True:
        following += 1.0
        term *= load / following
        beyond += term
        # The rest of the series is below term * following / (following - load).
        if term * following < _EPSILON * beyond * (following - load):
            break
    return exactly / (1.0 - exactly * beyond)


@nb.njit(cache=True)
def delay_from_loss(cores: float, load: float, loss: float) -> float:
    """Mean wait in an M/M/k queue, in mean service times (DRS eq. 2 times mu)."""
    spare = cores - load
    return cores * loss / (spare * (spare + load * loss))


@nb.njit(cache=True)
def gain_from_loss(cores: float, load: float, loss: float) -> float:
    """How much one more core shortens the mean wait of an M/M/k queue, in mean service times.

    With d = k - a, the difference of `delay_from_loss` at k and at k + 1 (whose loss follows from
    the recurrence) simplifies to a quotient of positive terms, so nothing cancels. Subtracting the
    two delays would leave only noise where the curve is flat, and allocators could not be exact.
    """
    spare = cores - load
    more = spare + 1.0
    above = load * (2.0 * spare + 1.0) + spare * more * more
    above += load * loss * (load + spare * more)
    return loss * above / (spare * more * (spare + load * loss) * (more + load * loss))


@nb.njit(cache=True)
def station_delay(cores: float, load: float) -> float:
    """Mean wait of one M/M/k queue in mean service times; infinite when it is unstable."""
    if not cores > load:
        return math.inf
    return delay_from_loss(cores, load, erlang_loss(cores, load))


@nb.njit(cache=True)
def _delays(cores: Any, load: Any, delay: Any) -> None:
    for index in range(len(cores)):
        delay[index] = station_delay(cores[index], load[index])


def mean_delay(cores: npt.ArrayLike, load: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Mean wait of M/M/k queues in mean service times, broadcasting; infinite where unstable."""
    k, a = np.broadcast_arrays(np.asarray(cores, np.float64), np.asarray(load, np.float64))
    delay = np.empty(k.size)
    _delays(k.ravel(), a.ravel(), delay)
    return delay.reshape(k.shape)
