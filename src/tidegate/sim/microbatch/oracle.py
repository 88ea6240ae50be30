"""The oracle: the fewest core-seconds that hold a latency target, with the future known.

A controller is judged against it, because a static allocation for the peak is easy to beat. For a
pipeline of one segment it is a dynamic programme over its micro-batches. A batch that starts at s
takes the rows that arrived since the start of the batch before it, and lasts
D = a0 + a1 k + N w delta(k) / k on k cores. Its rows waited for it, then for its end. The programme
chooses k for every batch, so that the target is held, first in as much of the time as possible, and
then at the least cost, which is the sum of k times the time until the next batch starts. That is
the least under its own conditions: batches take what the cost says, delta is as given, cores come
at once, and every batch counts, from the first one on.

Several segments share the latency, so a programme over all of them would be too large. There the
oracle is an estimate and no bound: time is divided into steps as long as a batch that is just on
target, and every step has the fewest cores that hold the target in the steady state at its rate,
by the model of a sequence.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from tidegate.control.allocation.allocate import Infeasible
from tidegate.control.latency.fewest_cores import fewest_cores
from tidegate.control.target import Target
from tidegate.errors import AskedWrongly
from tidegate.models.microbatch.batch_cost import SOJOURN_BATCHES, BatchCost
from tidegate.models.microbatch.station import MicroBatchStation
from tidegate.workload.profile import Profile

Vector = npt.NDArray[np.float64]

_STEPS_PER_TARGET = 160
_STEPS_PER_BATCH = 3000
"""Steps of the longest batch: memory grows with their square."""
_MOST_WORK = 2.0e9
"""Transitions of the programme; a longer load gets coarser steps of time."""
_MOST_SCHEDULE = 1 << 26
"""States up to which the schedule itself is remembered, not its cost alone."""
_MISSED = 1.0e6
"""Core-seconds that a second above the target counts as: more than any run has."""
_SAME_RATE = 0.01
"""Rates that differ by less than this share are planned once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleSegment:
    """A segment as the oracle sees it."""

    cost: BatchCost
    imbalances: Vector
    """delta on 1, 2, ... cores."""
    visits: float = 1.0
    """Rows of this segment for each row that comes to its sequence from outside."""
    interval_s: float = 0.0
    """P: its fixed trigger interval."""
    load: Profile | None = None
    """Its own load, with which it begins a sequence of its own; None: it follows the segment before
    it, or is the first one."""
    backlog_rows: float = 0.0
    """Rows of its own load that are there at the start."""


@dataclass(frozen=True, slots=True, eq=False)
class Oracle:
    """The least cost of one load."""

    core_seconds: float
    within: float
    """The share of the time in which the target is held; below 1 where no cores hold it."""
    cores: Vector
    """Cores at the end of each second; empty for a load too long to remember its schedule."""
    estimated: bool = False
    """Whether it is the estimate for several segments, which a controller may beat."""


def oracle(
    load: Profile,
    seconds: float,
    segments: Sequence[OracleSegment],
    target: Target,
    cores: Sequence[int],
    *,
    reach: float = 1.0,
    backlog_rows: float = 0.0,
) -> Oracle:
    """The least cost of `seconds` of a load, on any of the numbers of cores in `cores`.

    `reach` is the measured latency over the modelled one, by which a policy corrects its model. The
    oracle has to hold the target in the same world. `backlog_rows` of the load are there at the
    start.
    """
    allowed = np.array(sorted(set(cores)), dtype=np.int64)
    if not len(allowed) or allowed[0] < 1 or not segments or seconds <= 0.0:
        raise AskedWrongly("an oracle needs a segment, some seconds of load and at least one core")
    if len(segments) > 1:
        return _by_steady_states(load, seconds, segments, target, allowed, reach, backlog_rows)
    return _by_batches(load, seconds, segments[0], target, allowed, reach, backlog_rows)


def _by_batches(
    load: Profile,
    seconds: float,
    segment: OracleSegment,
    target: Target,
    allowed: npt.NDArray[np.int64],
    reach: float,
    backlog_rows: float,
) -> Oracle:
    cost = segment.cost
    overhead_s = np.array([cost.overhead_s(int(k)) for k in allowed])
    delta = segment.imbalances[np.minimum(allowed, len(segment.imbalances)) - 1]
    row_s = cost.work_s * delta / allowed
    longest_s = max(
        2.0 * target.latency_s,
        2.0 * segment.interval_s,
        1.2 * _longest_s(load, seconds, overhead_s[-1], row_s[-1], backlog_rows),
        2.0 * (float(overhead_s.max()) + cost.least_s),
    )
    step_s = max(
        target.latency_s / _STEPS_PER_TARGET,
        math.sqrt(seconds * longest_s * len(allowed) / _MOST_WORK),
        longest_s / _STEPS_PER_BATCH,
        0.001,
    )
    steps = math.ceil(seconds / step_s)
    widest = math.ceil(longest_s / step_s)
    arrived = load.cumulative(np.rint(np.arange(steps + 1) * step_s * 1000.0).astype(np.int64))
    arrived[1:] += backlog_rows
    waited = np.concatenate(([0.0], np.cumsum((arrived[1:] + arrived[:-1]) / 2.0 * step_s)))
    remembered = steps * widest <= _MOST_SCHEDULE
    total, late_s, chosen = _programme(
        arrived,
        waited,
        allowed.astype(np.float64),
        overhead_s,
        cost.least_s,
        row_s,
        step_s,
        max(round(segment.interval_s / step_s), 1),
        widest,
        target.latency_s / reach,
        -1.0 if target.percentile is None else target.percentile / 100.0,
        remembered,
    )
    by_second = np.empty(0)
    if remembered:
        places = np.minimum((np.arange(1, int(seconds) + 1) / step_s).astype(np.int64), steps) - 1
        by_second = chosen[places]
    return Oracle(total, 1.0 - min(late_s / seconds, 1.0), by_second)


def _longest_s(
    load: Profile, seconds: float, overhead_s: float, row_s: float, backlog_rows: float
) -> float:
    """The longest batch if all cores work all the time: no schedule needs longer ones."""
    at_s, before, longest_s = 0.0, 0.0, overhead_s
    while at_s < seconds:
        arrived = backlog_rows + float(load.cumulative(round(at_s * 1000)))
        batch_s = max(overhead_s + (arrived - before) * row_s, 0.01)
        longest_s = max(longest_s, batch_s)
        at_s, before = at_s + batch_s, arrived
    return longest_s


@nb.njit(cache=True, nogil=True)  # a page goes on meanwhile
def _programme(
    arrived: Any,
    waited: Any,
    cores: Any,
    overhead_s: Any,
    least_s: float,
    row_s: Any,
    step_s: float,
    interval: int,
    widest: int,
    target_s: float,
    share: float,
    remembered: bool,
) -> tuple[float, float, Any]:
    """The cheapest chain of batches; a state is (start of a batch, steps since the one before).

    Returns core-seconds, seconds above the target, and the cores of each step.
    """
    steps = len(arrived) - 1
    ring = widest + 1
    costs = np.full((ring, ring), np.inf)
    lates = np.zeros((ring, ring))
    costs[0, 0] = 0.0
    size = steps + 1 if remembered else 1
    came_from = np.zeros((size, ring if remembered else 1), dtype=np.int32)
    came_with = np.zeros((size, ring if remembered else 1), dtype=np.float32)
    best_cost, best_late, best_at, best_span, best_cores = np.inf, 0.0, 0, 0, 0.0
    for at in range(steps):
        here = costs[at % ring]
        for span in range(ring):
            if here[span] == np.inf:
                continue
            begin = max(at - span, 0)
            rows = arrived[at] - arrived[begin]
            for choice in range(len(cores)):
                waits_s = 0.0
                if rows <= 1e-9:
                    lasts_s = step_s
                    late = False
                    ahead = 1
                else:
                    lasts_s = overhead_s[choice] + max(rows * row_s[choice], least_s)
                    gap_s = (at - begin) * step_s
                    if share < 0.0:
                        waits_s = (waited[at] - waited[begin] - arrived[begin] * gap_s) / rows
                    else:
                        waits_s = share * gap_s
                    late = waits_s + lasts_s > target_s
                    ahead = max(int(lasts_s / step_s + 0.5), interval)
                    if ahead > widest:
                        if choice < len(cores) - 1:
                            continue
                        ahead = widest
                pays_s = min(ahead, steps - at) * step_s
                late_s = pays_s if late else 0.0
                cost = here[span] + cores[choice] * pays_s + _MISSED * late_s
                to = at + ahead
                if to >= steps:
                    if cost < best_cost:
                        best_cost, best_late = cost, lates[at % ring, span] + late_s
                        best_at, best_span, best_cores = at, span, cores[choice]
                elif cost < costs[to % ring, ahead]:
                    costs[to % ring, ahead] = cost
                    lates[to % ring, ahead] = lates[at % ring, span] + late_s
                    if remembered:
                        came_from[to, ahead] = span
                        came_with[to, ahead] = cores[choice]
                if rows <= 1e-9:
                    break  # without rows there is no batch: the fewest cores wait
        here[:] = np.inf
    schedule = np.zeros(steps if remembered else 0)
    if remembered:
        schedule[best_at:] = best_cores
        at, span = best_at, best_span
        while at > 0:
            schedule[at - span : at] = came_with[at, span]
            at, span = at - span, came_from[at, span]
    return best_cost - _MISSED * best_late, best_late, schedule


def _by_steady_states(
    load: Profile,
    seconds: float,
    segments: Sequence[OracleSegment],
    target: Target,
    allowed: npt.NDArray[np.int64],
    reach: float,
    backlog_rows: float,
) -> Oracle:
    """The estimate for several segments.

    A batch takes all rows of its step, so a spike that is shorter than one costs no more than the
    same rows spread over it.
    """
    step_s = target.mean_s / SOJOURN_BATCHES
    edges_s = np.append(np.arange(0.0, seconds, step_s), seconds)
    spans_s = np.diff(edges_s)
    edges_ms = np.rint(edges_s * 1000.0).astype(np.int64)
    rates, entering, waiting = [], load, backlog_rows
    for one in segments:
        if one.load is not None:
            entering, waiting = one.load, one.backlog_rows
        arrived = np.diff(entering.cumulative(edges_ms))
        arrived[0] += waiting
        rates.append(one.visits * arrived / np.maximum(spans_s, 1e-9))
    alike = np.round(np.log(np.maximum(rates, 1e-9)) / _SAME_RATE).astype(np.int64)
    _, kinds = np.unique(alike, axis=1, return_inverse=True)
    needed, missed = np.zeros(len(spans_s)), np.zeros(len(spans_s))
    for kind in range(int(kinds.max()) + 1):
        mine = kinds.reshape(-1) == kind
        highest = [float(rate[mine].max()) for rate in rates]
        found = _fewest(segments, highest, target, reach, allowed)
        needed[mine] = allowed[-1] if found is None else found
        missed[mine] = found is None
    places = np.minimum((np.arange(1, int(seconds) + 1) / step_s).astype(np.int64), len(needed) - 1)
    return Oracle(
        float(needed @ spans_s),
        1.0 - float(missed @ spans_s) / seconds,
        needed[places],
        estimated=True,
    )


def _fewest(
    segments: Sequence[OracleSegment],
    rates: Sequence[float],
    target: Target,
    reach: float,
    allowed: npt.NDArray[np.int64],
) -> int | None:
    """The fewest allowed cores that hold the target at steady rates; None if none do."""
    count = len(segments)
    outside = sum(
        rate
        for number, (one, rate) in enumerate(zip(segments, rates, strict=True))
        if number == 0 or one.load is not None
    )
    needed, balanced = count, [1] * count
    for _ in range(2 if outside > 0.0 else 0):  # the imbalance depends on the cores looked for
        stations = [
            MicroBatchStation(
                cost=one.cost,
                arrival_rate=rate,
                imbalance=float(one.imbalances[min(k, len(one.imbalances)) - 1]),
                interval_s=one.interval_s,
                visit_ratio=rate / outside,
                apart=one.load is not None,
            )
            for one, rate, k in zip(segments, rates, balanced, strict=True)
        ]
        most = [int(allowed[-1])] * count
        try:
            best = fewest_cores(
                stations, target.latency_s / reach, target.share, least=[1] * count, most=most
            )
        except Infeasible:
            return None
        balanced, needed = [int(k) for k in best.cores], best.total
    enough = allowed[allowed >= needed]
    return int(enough[0]) if len(enough) else None
