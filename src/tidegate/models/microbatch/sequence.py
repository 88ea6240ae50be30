"""The sojourn of rows that pass several micro-batch segments, one after the other or in a loop.

Rows arrive at the first segment one by one and at a later segment in batches: a batch that ends
hands all its rows over at once. So only the first segment gathers rows evenly. A later segment that
is faster than the one before it is idle when a batch comes, and begins at once: its rows do not
wait, and its batch has the rows that were gathered during a batch of the segment before. A slower
one is busy all the time: a batch that comes waits until the running one ends, half a batch on
average. docs/models.md derives the formulas.
"""

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidegate.models.microbatch.percentile import MOST_SPREAD, SojournTime, Way
from tidegate.models.microbatch.station import MicroBatchStation

_MOST_PASSES = 48
"""Numbers of passes through a loop that are told apart."""
_LONGEST_LOOP = 1e6
"""The most passes on average. A ratio beyond this is no loop, but a source that has fallen
silent."""
_REST = 1e-3
"""Numbers of passes that fewer rows than this share make are not told apart."""


@dataclass(frozen=True, slots=True)
class _Later:
    """What one visit to a later segment takes: the wait for its next batch, and that batch."""

    visit_ratio: float
    loops: bool
    mean_s: float
    longer_s: float
    variance_s2: float


def total_latency(stations: Sequence[MicroBatchStation], cores: Sequence[int]) -> float:
    """E[T] through all stations in their order; infinite if one of them cannot keep up.

    It is linear in the passes through a loop, so these need not be told apart.
    """
    found = total_sojourn(stations, cores, mean_only=True)
    return math.inf if found is None else found.mean_s


def total_percentile(
    stations: Sequence[MicroBatchStation], cores: Sequence[int], share: float
) -> float:
    """The sojourn through all stations that this share of the rows do not exceed."""
    found = total_sojourn(stations, cores)
    return math.inf if found is None else found.percentile(share)


def total_sojourn(
    stations: Sequence[MicroBatchStation], cores: Sequence[int], *, mean_only: bool = False
) -> SojournTime | None:
    """The distribution of the sojourn; None if a station cannot keep up.

    With `mean_only` its mean is right, and its percentiles are not.

    A station whose rows come from outside begins a sequence of its own. A row passes one of them,
    each with the share of the rows that arrives there.
    """
    if any(k <= station.load for station, k in zip(stations, cores, strict=True)):
        return None
    begins = [0, *(n for n, one in enumerate(stations) if n > 0 and one.apart), len(stations)]
    arriving = sum(_entered(stations[begin]) for begin in begins[:-1])
    ways: list[Way] = []
    for begin, end in itertools.pairwise(begins):
        entered = _entered(stations[begin])
        share = entered / arriving if arriving > 0.0 else 1.0
        through = _through(stations[begin:end], cores[begin:end], entered, mean_only)
        ways += through if share == 1.0 else [replace(w, share=share * w.share) for w in through]
    return SojournTime(tuple(ways))


def _entered(first: MicroBatchStation) -> float:
    """Rows that come to a sequence from outside, per row; those of a loop come again."""
    return 1.0 if first.loops else first.visit_ratio


def _through(
    stations: Sequence[MicroBatchStation], cores: Sequence[int], entered: float, mean_only: bool
) -> list[Way]:
    """The ways through stations in sequence; `entered` rows come to them per row from outside."""
    first = stations[0]
    (own,) = first.sojourn(cores[0]).ways
    duration_s = first.duration_s(cores[0])
    came = _Handover(max(duration_s, first.interval_s), own.spread, first.interval_s, duration_s)
    later = []
    for station, k in zip(stations[1:], cores[1:], strict=True):
        visit, came = _visit(station, k, came, entered)
        later.append(visit)
    again = _again(first, cores[0], alone=not any(visit.loops for visit in later))
    return _ways(own, again, later, mean_only)


@dataclass(frozen=True, slots=True)
class _Handover:
    """How batches come from the segment before."""

    every_s: float
    spread: float
    """Relative deviation of the time between two of them."""
    interval_s: float
    """The trigger interval of that segment; 0: none."""
    after_s: float
    """How long after its trigger a batch of that segment ends."""


def _visit(
    station: MicroBatchStation, cores: int, came: _Handover, entered: float
) -> tuple[_Later, _Handover]:
    """One visit to a later station, and how it hands its own batches over."""
    share = station.load / cores
    visits = station.visit_ratio / max(entered, 1e-9)
    if station.loops and station.passes is not None:
        visits = station.passes
    overhead_s = station.cost.overhead_s(cores)
    interval_s = station.interval_s
    steady_s = max(overhead_s / (1.0 - share), overhead_s + station.cost.least_s)
    if max(steady_s, interval_s) > came.every_s * (1.0 + 1e-9):
        # It is busy all the time, or waits for its own trigger: batches come at any moment of it.
        duration_s = station.duration_s(cores)
        cycle_s = max(duration_s, interval_s)
        spread = station.spread_on(cores) if duration_s >= interval_s else 0.0
        wait_s, vary = cycle_s / 2.0 * (1.0 + spread**2), cycle_s**2 / 12.0
        noise = spread if spread > 0.0 else station.noise_on(cores)
        variance = vary + (noise * duration_s) ** 2
        later = _Later(
            visits,
            station.loops,
            wait_s + duration_s,
            0.0,
            variance,
        )
        return later, _Handover(cycle_s, spread, interval_s, duration_s)
    worked_s = share * came.every_s
    duration_s = overhead_s + max(worked_s, station.cost.least_s)
    noise_s = station.noise_on(cores) * duration_s
    wait_s = vary = 0.0
    if interval_s > 0.0 and came.interval_s == interval_s and came.after_s <= interval_s:
        wait_s = interval_s - came.after_s  # both begin at the same moments
    elif interval_s > 0.0:
        wait_s, vary = interval_s / 2.0, interval_s**2 / 12.0
    else:
        # It is done before the next batch comes, but for the noise: a reflected random walk.
        free_s = max(came.every_s - duration_s, 1e-9)
        varies = noise_s**2 + (came.spread * came.every_s) ** 2
        wait_s = min(varies / (2.0 * free_s), duration_s / 2.0)
        wait_s *= math.exp(-((free_s / 3.0) ** 2) / max(varies, 1e-18)) if varies > 0.0 else 0.0
        vary = wait_s**2
    longer_s = worked_s if came.spread > 0.0 and worked_s >= station.cost.least_s else 0.0
    later = _Later(
        visits,
        station.loops,
        wait_s + duration_s,
        longer_s,
        noise_s**2 + vary,
    )
    return later, _Handover(came.every_s, came.spread, interval_s, duration_s)


def _again(first: MicroBatchStation, cores: int, *, alone: bool) -> _Later:
    """Another visit to the first station, by rows that a loop sends back to it.

    Rows that it sends to itself come when its batch ends, just before the next one begins. Rows
    that come back by way of another station find it at any moment of a batch.
    """
    duration_s = first.duration_s(cores)
    cycle_s = max(duration_s, first.interval_s)
    wait_s = cycle_s - duration_s if alone else cycle_s / 2.0
    vary = 0.0 if alone else cycle_s**2 / 12.0
    noise_s = min(first.spread_on(cores), MOST_SPREAD) * duration_s
    passes = first.visit_ratio if first.passes is None else first.passes
    return _Later(passes, first.loops, wait_s + duration_s, 0.0, vary + noise_s**2)


def _ways(own: Way, again: _Later, later: Sequence[_Later], mean_only: bool) -> list[Way]:
    """The ways that rows take, by how far they get and how often they pass a loop."""
    looped = [visit.visit_ratio for visit in (again, *later) if visit.loops]
    passes = min(max(looped, default=1.0), _LONGEST_LOOP)
    ways = []
    turn_s = sum(visit.mean_s for visit in (again, *later) if visit.loops)
    numbers = ((1.0, passes - 1.0, 0.0),) if mean_only else _extra_passes(passes)
    for share, extra, vary in numbers:
        scale = extra / (passes - 1.0) if passes > 1.0 else 0.0
        turns = scale * max(again.visit_ratio - 1.0, 0.0) if again.loops else 0.0
        fixed_s = own.fixed_s + turns * again.mean_s
        longer_s = own.longer_s
        variance = own.noise_s**2 + turns * again.variance_s2 + vary * turn_s**2
        left = 1.0
        for visit in later:
            reached = left if visit.loops else min(visit.visit_ratio, left)
            if left - reached > _REST:  # so many rows end here, before this station
                ways.append(_way(own, share * (left - reached), fixed_s, longer_s, variance))
                left = reached
            turns = 1.0 + scale * max(visit.visit_ratio - 1.0, 0.0) if visit.loops else 1.0
            fixed_s += turns * visit.mean_s
            longer_s += visit.longer_s
            variance += turns * visit.variance_s2
        ways.append(_way(own, share * left, fixed_s, longer_s, variance))
    return ways


def _way(own: Way, share: float, fixed_s: float, longer_s: float, variance_s2: float) -> Way:
    return Way(share, fixed_s, longer_s, math.sqrt(variance_s2), own.span_s, own.spread)


@functools.lru_cache(maxsize=64)
def _extra_passes(mean: float) -> tuple[tuple[float, float, float], ...]:
    """The shares of rows that pass a loop 1 + n times: geometric, with this mean number of passes.

    Each entry has the mean and the variance of n. Neighbouring numbers share an entry where there
    are many, and the last entry holds all rows that pass more often.
    """
    if mean <= 1.0 + _REST:
        return ((1.0, 0.0, 0.0),)
    log_stay = math.log1p(-1.0 / mean)
    step = max(1, math.ceil(math.log(_REST) / log_stay / _MOST_PASSES))
    # The moments of a geometric number that is below `step`, in closed form.
    beyond = math.exp(step * log_stay)
    among = 1.0 - beyond
    middle = vary = 0.0
    if step > 1:
        middle = max(mean - 1.0 - step * beyond / among, 0.0)
        vary = max(mean * (mean - 1.0) - beyond * (step / among) ** 2, 0.0)
    found = []
    begin = 0
    while (left := math.exp(begin * log_stay)) > _REST:
        found.append((left * among, begin + middle, vary))
        begin += step
    found.append((left, begin + mean - 1.0, mean * (mean - 1.0)))
    return tuple(found)
