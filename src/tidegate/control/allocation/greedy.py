"""The compiled part of the allocator: greedy marginal allocation over a station table.

`_fill` is DRS's Algorithm 1 with a heap: it gives one core at a time to the station that gains
most, which is optimal because every station is convex (theorem 1). `_leap` gets close to the same
result in few steps, by bisection on the marginal benefit: every greedy run that reaches a threshold
has taken all cores that gain more, so these can be taken at once, and `_fill` does the rest. Both
follow a station's curve by the same recurrence from the same start, bit for bit, so they agree even
where two stations tie (the first one wins).
"""

import math
from typing import Any

import numba as nb
import numpy as np

from tidegate.control.allocation.stations import (
    COLUMNS,
    FIXED,
    FLOOR,
    GROWTH,
    INTERVAL,
    LEAST,
    LOAD,
    ROWLESS,
    WAIT,
    WEIGHT,
)
from tidegate.models.queueing.erlang import delay_from_loss, erlang_loss, gain_from_loss, next_loss

_TINIEST = 5e-324
_NEAR = 1e-10
"""A running sum this close to the target, relatively, is computed again before it decides."""


_WORKING, _PLATEAU, _RESTING, _RESTING_PLATEAU = range(4)
"""The regimes of a micro-batch segment. Its batches follow each other or rest until their interval
is over, and either their rows take the most of their time, or what runs beside the tasks (L)."""


@nb.njit(cache=True)
def _overhead(row: Any, cores: float) -> float:
    """a(k) of a segment, as `BatchCost.overhead_s` has it."""
    return float(row[FIXED] + row[GROWTH] * cores + row[ROWLESS] / cores)


@nb.njit(cache=True)
def _regime(row: Any, cores: float) -> int:
    """The regime of a segment on so many cores: the one whose latency is the largest."""
    overhead, least, interval = _overhead(row, cores), row[LEAST], row[INTERVAL]
    spare = cores - row[LOAD]
    if overhead * cores < interval * spare and overhead + least < interval:
        return _RESTING_PLATEAU if interval * row[LOAD] < least * cores else _RESTING
    return _PLATEAU if overhead * cores < (overhead + least) * spare else _WORKING


@nb.njit(cache=True)
def _batch_latency(row: Any, cores: float) -> float:
    """Weighted latency of a micro-batch segment, as `MicroBatchStation.latency` has it."""
    overhead, least, interval = _overhead(row, cores), row[LEAST], row[INTERVAL]
    regime = _regime(row, cores)
    if regime == _WORKING:
        latency = 1.5 * overhead * cores / (cores - row[LOAD])
    elif regime == _PLATEAU:
        latency = 1.5 * (overhead + least)
    elif regime == _RESTING:
        latency = interval / 2.0 + overhead + interval * row[LOAD] / cores
    else:
        latency = interval / 2.0 + overhead + least
    return float(row[WEIGHT] * latency)


@nb.njit(cache=True)
def _batch_gain(row: Any, cores: float) -> float:
    """The gain of one more core: a closed form in each regime, so that nothing cancels."""
    load, growth = row[LOAD], row[GROWTH]
    shared = row[ROWLESS] / (cores * (cores + 1.0))
    regime = _regime(row, cores)
    if regime != _regime(row, cores + 1.0):
        return _batch_latency(row, cores) - _batch_latency(row, cores + 1.0)
    if regime == _WORKING:
        spare = cores - load
        curved = (row[FIXED] + growth * load) * load + row[ROWLESS]
        curved /= spare * (spare + 1.0)
        return float(row[WEIGHT] * 1.5 * (curved - growth))
    if regime == _PLATEAU:
        return float(row[WEIGHT] * 1.5 * (shared - growth))
    if regime == _RESTING:
        waited = row[INTERVAL] * load / (cores * (cores + 1.0))
        return float(row[WEIGHT] * (waited + shared - growth))
    return float(row[WEIGHT] * (shared - growth))


@nb.njit(cache=True)
def _gain(row: Any, cores: float, loss: float) -> float:
    """How much one more core lowers the network's latency."""
    if row[WEIGHT] != 0.0:
        return _batch_gain(row, cores)
    return float(row[WAIT] * gain_from_loss(cores, row[LOAD], loss))


@nb.njit(cache=True)
def _floor(table: Any) -> float:
    """The part of the latency that no core can lower: the queues' service times."""
    total = 0.0
    lost = 0.0
    for index in range(len(table)):
        part = table[index, FLOOR] - lost
        grown = total + part
        lost = (grown - total) - part
        total = grown
    return total


@nb.njit(cache=True)
def _excess(table: Any, cores: Any, losses: Any) -> float:
    """The rest of the latency (DRS eq. 4), by a compensated sum: waits, and whole micro-batches.

    It is separate from the floor so that it keeps all its digits even when it is tiny.
    """
    total = 0.0
    lost = 0.0
    for index in range(len(table)):
        row = table[index]
        if row[WEIGHT] != 0.0:
            part = _batch_latency(row, cores[index])
        else:
            part = row[WAIT] * delay_from_loss(cores[index], row[LOAD], losses[index])
        part -= lost
        grown = total + part
        lost = (grown - total) - part
        total = grown
    return total


@nb.njit(cache=True)
def _start(table: Any, least: Any, most: Any, cores: Any, losses: Any) -> int:
    """Set the smallest allowed allocation; return a station that cannot be stable, or -1."""
    for index in range(len(table)):
        load = table[index, LOAD]
        if not load < most[index]:
            return index
        count = max(math.floor(load) + 1, least[index], 1)
        if count > most[index]:
            return index
        cores[index] = count
        losses[index] = erlang_loss(float(count), load) if table[index, WEIGHT] == 0.0 else 0.0
    return -1


@nb.njit(cache=True)
def _sift(gains: Any, order: Any, size: int, place: int) -> None:
    """Sift the entry at `place` down below larger gains; ties go to the first station."""
    gain, which = gains[place], order[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        other = child + 1
        if other < size and (
            gains[other] > gains[child]
            or (gains[other] == gains[child] and order[other] < order[child])
        ):
            child = other
        if gains[child] < gain or (gains[child] == gain and order[child] > which):
            break
        gains[place], order[place] = gains[child], order[child]
        place = child
    gains[place], order[place] = gain, which


@nb.njit(cache=True)
def _fill(
    table: Any, most: Any, cores: Any, losses: Any, total: int, budget: int, target: float
) -> float:
    """Allocate cores until the budget, the target or the benefit ends; return the latency."""
    size = len(table)
    gains = np.empty(size)
    order = np.empty(size, np.int64)
    for index in range(size):
        order[index] = index
        gains[index] = (
            _gain(table[index], cores[index], losses[index]) if cores[index] < most[index] else 0.0
        )
    for place in range(size // 2 - 1, -1, -1):
        _sift(gains, order, size, place)
    floor = _floor(table)
    fresh = _excess(table, cores, losses)
    running = fresh
    while total < budget and gains[0] > 0.0:
        if target > 0.0:
            # A running sum drifts; near the target, or far from where it began, sum afresh.
            if running < 0.5 * fresh or floor + running * (1.0 - _NEAR) <= target:
                running = fresh = _excess(table, cores, losses)
            if floor + running <= target:
                break
            running -= gains[0]
        index = order[0]
        row = table[index]
        cores[index] += 1
        total += 1
        if row[WEIGHT] == 0.0:
            losses[index] = next_loss(losses[index], cores[index], row[LOAD])
        gains[0] = _gain(row, cores[index], losses[index]) if cores[index] < most[index] else 0.0
        _sift(gains, order, size, 0)
    return floor + _excess(table, cores, losses)


@nb.njit(cache=True)
def _gallop(row: Any, count: int, most: int, threshold: float) -> int:
    """The cores of a micro-batch segment with all cores that gain more than the threshold.

    Its gain needs no recurrence, so doubling steps and bisection find that number.
    """
    step = 1
    while count + step <= most and _batch_gain(row, count + step - 1) > threshold:
        count += step
        step *= 2
    while step > 0:
        if count + step <= most and _batch_gain(row, count + step - 1) > threshold:
            count += step
        step //= 2
    return count


@nb.njit(cache=True)
def _leap(
    table: Any, most: Any, cores: Any, losses: Any, total: int, budget: int, target: float
) -> int:
    """Allocate at once the cores that `_fill` would take one by one; return the new total.

    It stops when about one core per station is left to decide.
    """
    size = len(table)
    further = np.empty(size, np.int64)
    further_losses = np.empty(size)
    floor = _floor(table)
    high = 0.0
    for index in range(size):
        if cores[index] < most[index]:
            high = max(high, _gain(table[index], cores[index], losses[index]))
    low = 0.0
    reach = 1.0 / 16.0
    while high > 0.0 and budget - total > size:
        if low > 0.0:
            threshold = math.sqrt(low) * math.sqrt(high)
            if not low < threshold < high:
                break
        else:
            threshold = high * reach
            reach *= reach
        sum_cores = total
        for index in range(size):
            row = table[index]
            count, loss = cores[index], losses[index]
            if row[WEIGHT] != 0.0:
                count = _gallop(row, count, most[index], threshold)
                sum_cores += count - cores[index]
            else:
                while count < most[index] and _gain(row, count, loss) > threshold:
                    count += 1
                    sum_cores += 1
                    loss = next_loss(loss, count, row[LOAD])
                    if sum_cores > budget:
                        break
            further[index], further_losses[index] = count, loss
            if sum_cores > budget:
                break
        beyond = sum_cores > budget
        if not beyond and target > 0.0:
            excess = _excess(table, further, further_losses)
            beyond = floor + excess * (1.0 - _NEAR) <= target
        if beyond:
            low = max(threshold, _TINIEST)  # never zero, or the search would start again
            if sum_cores <= budget and sum_cores - total <= size:
                break
        else:
            cores[:] = further
            losses[:] = further_losses
            total = sum_cores
            high = threshold
    return total


@nb.njit(cache=True)
def reachable(table: Any, least: Any, most: Any) -> float:
    """The lowest latency of any allocation: every station at its maximum or where more hurts.

    It is minus infinity when a station cannot be stable; `allocate` reports that.
    """
    size = len(table)
    cores = np.empty(size, np.int64)
    losses = np.zeros(size)
    for index in range(size):
        row = table[index]
        if not row[LOAD] < most[index] or least[index] > most[index]:
            return -math.inf
        if row[WEIGHT] != 0.0:
            stable = max(math.floor(row[LOAD]) + 1, least[index])
            cores[index] = _gallop(row, stable, most[index], 0.0)
        else:
            cores[index] = most[index]
            losses[index] = erlang_loss(float(most[index]), row[LOAD])
    return _floor(table) + _excess(table, cores, losses)


@nb.njit(cache=True)
def queue_rows(arrival: Any, service: Any, variability: Any, visits: Any) -> Any:
    """The station table of queues; the load is nan where rates are invalid."""
    rows = np.zeros((len(arrival), COLUMNS))
    for index in range(len(arrival)):
        if service[index] > 0.0 and arrival[index] >= 0.0 and variability[index] >= 0.0:
            rows[index, LOAD] = arrival[index] / service[index]
            rows[index, FLOOR] = visits[index] / service[index]
            rows[index, WAIT] = variability[index] * rows[index, FLOOR]
        else:
            rows[index, LOAD] = math.nan
    return rows


@nb.njit(cache=True)
def allocate(
    table: Any, least: Any, most: Any, budget: int, target: float, leaping: bool
) -> tuple[Any, int, float, int]:
    """Cores per station, their sum, the latency, and a station that cannot be stable (or -1).

    With a negative target the result has the best latency within the budget. The latency is
    infinite when even the smallest allocation exceeds the budget.
    """
    size = len(table)
    cores = np.zeros(size, np.int64)
    losses = np.empty(size)
    unstable = _start(table, least, most, cores, losses)
    total = cores.sum()
    if unstable >= 0 or total > budget:
        return cores, total, math.inf, unstable
    if leaping:
        total = _leap(table, most, cores, losses, total, budget, target)
    latency = _fill(table, most, cores, losses, total, budget, target)
    return cores, cores.sum(), latency, -1
