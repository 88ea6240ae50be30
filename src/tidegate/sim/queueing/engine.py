"""The compiled event loop of the network simulator: events, queues and random draws.

All compiled code is in this one file, because numba's cache notices a change only in the file of
the function it caches. The loop returns when a table is nearly full or its budget of events is
spent, and is called again: `network.py` handles growth, progress and Ctrl-C in Python.

Time advances from event to event. An event is an external arrival (the next one is always known, so
it needs no heap entry) or the end of a service (one heap entry per busy core). Queued tuples are
nodes of linked lists in one pool, with one list per station, first come first served.
"""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

DONE, PAUSED, MORE_WAITING, MORE_ROOTS = 0, 1, 2, 3
"""Why the loop returned: it is done, its budget is spent, or a table is nearly full."""

ROUTED, INDEPENDENT, EVEN, GEOMETRIC = 0, 1, 2, 3
"""How a ratio becomes a whole number of tuples; see `emission.py`."""

GEOMETRIC_CAP = 64.0
"""Geometric counts are capped at this multiple of the ratio: more has probability below e^-64."""

# Fields of a station's row of sums.
(
    ARRIVALS,
    LAST_ARRIVAL,
    GAPS,
    GAP_SUM,
    GAP_SQUARES,
    VISITS,
    WAIT_SUM,
    SOJOURN_SUM,
    SERVICE_SUM,
    SERVICE_SQUARES,
    BUSY_SUM,
    QUEUE_SUM,
    LONGEST_QUEUE,
    PROCESSED,
    OFFERED,
) = range(15)
FIELDS = 15

# Places of the integer state.
HEAP_SIZE, ROOTS, FREE, WAITING = range(4)
# Places of the floating state.
NOW, NEXT_ARRIVAL = range(2)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Table = NDArray[np.float64]
Words = NDArray[np.uint64]


@njit(cache=True)
def uniform(streams: Words, i: int) -> float:
    """A number in [0, 1) from stream i (xoshiro256++); every station has its own stream."""
    s0, s1, s2, s3 = streams[i, 0], streams[i, 1], streams[i, 2], streams[i, 3]
    total = s0 + s3
    result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    streams[i, 1] = s1 ^ s2
    streams[i, 0] = s0 ^ s3
    streams[i, 2] = s2 ^ shifted
    streams[i, 3] = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    return np.float64(result >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True)
def draw(streams: Words, i: int, kind: int, shape: float) -> float:
    """Draw a positive time of mean one; the kinds are numbered as in `distributions.KINDS`."""
    if kind == 1:
        return -math.log(1.0 - uniform(streams, i))
    if kind == 0:
        return 1.0
    if kind == 2:
        return 1.0 + shape * (2.0 * uniform(streams, i) - 1.0)
    if kind == 3:
        radius = math.sqrt(-2.0 * math.log(1.0 - uniform(streams, i)))
        normal = radius * math.cos(2.0 * math.pi * uniform(streams, i))
        return math.exp(shape * (normal - 0.5 * shape))
    phase = shape if uniform(streams, i) < shape else 1.0 - shape
    return -math.log(1.0 - uniform(streams, i)) / (2.0 * phase)


@njit(cache=True)
def after(now: float, tuples: float, rates: Floats, step_s: float, start_s: float) -> float:
    """The time at which `tuples` more external tuples have arrived: the inverted rate integral.

    A renewal process in this operational time is exact for Poisson arrivals, and keeps the scv of
    any other distribution while the rate changes; thinning would not. The first rate holds until
    `step_s` after `start_s`, when its step ends, and the last one for ever.
    """
    last = rates.shape[0] - 1
    step = 0 if last == 0 else max(0, min(int((now - start_s) / step_s), last))
    while step < last:
        until = start_s + (step + 1) * step_s
        room = (until - now) * rates[step]
        if tuples < room:
            return float(now + tuples / rates[step])
        tuples -= max(room, 0.0)
        now = max(until, now)
        step += 1
    return float(now + tuples / rates[last]) if rates[last] > 0.0 else np.inf


@njit(cache=True)
def push(heap_time: Floats, heap_core: Ints, size: int, time: float, core: int) -> None:
    """Add the end of a service to a heap of `size` entries."""
    hole = size
    while hole > 0:
        parent = (hole - 1) >> 1
        if heap_time[parent] <= time:
            break
        heap_time[hole] = heap_time[parent]
        heap_core[hole] = heap_core[parent]
        hole = parent
    heap_time[hole] = time
    heap_core[hole] = core


@njit(cache=True)
def replace_first(heap_time: Floats, heap_core: Ints, size: int, time: float, core: int) -> None:
    """Replace the earliest entry of a heap of `size` entries."""
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= size:
            break
        if child + 1 < size and heap_time[child + 1] < heap_time[child]:
            child += 1
        if heap_time[child] >= time:
            break
        heap_time[hole] = heap_time[child]
        heap_core[hole] = heap_core[child]
        hole = child
    heap_time[hole] = time
    heap_core[hole] = core


@njit(cache=True)
def overlap(start: float, end: float, window_start: float, window_end: float) -> float:
    """How much of [start, end] lies in the measured window."""
    return max(0.0, min(end, window_end) - max(start, window_start))


@njit(cache=True)
def service(
    i: int,
    arrived: float,
    now: float,
    window_start: float,
    window_end: float,
    streams: Words,
    kinds: Ints,
    shapes: Floats,
    means_s: Floats,
    sums: Table,
) -> float:
    """Draw and record a service of station i that starts now; return when it ends."""
    service_s = float(means_s[i]) * draw(streams, i, kinds[i], shapes[i])
    row = sums[i]
    if window_start <= arrived < window_end:
        wait_s = now - arrived
        row[VISITS] += 1.0
        row[WAIT_SUM] += wait_s
        row[SOJOURN_SUM] += wait_s + service_s
        row[SERVICE_SUM] += service_s
        row[SERVICE_SQUARES] += service_s * service_s
    row[BUSY_SUM] += overlap(now, now + service_s, window_start, window_end)
    row[QUEUE_SUM] += overlap(arrived, now, window_start, window_end)
    return now + service_s


@njit(cache=True)
def emitted(
    streams: Words, i: int, mode: int, whole: int, fraction: float, ratio: float, processed: float
) -> int:
    """How many tuples go along an edge, in the modes that treat each edge separately."""
    if mode == EVEN:
        return int(math.floor((processed + 1.0) * ratio) - math.floor(processed * ratio))
    if mode == GEOMETRIC and ratio > 1.0:
        more = math.floor(math.log(1.0 - uniform(streams, i)) / math.log(1.0 - 1.0 / ratio))
        return 1 + int(min(more, GEOMETRIC_CAP * ratio))
    if fraction > 0.0 and uniform(streams, i) < fraction:
        return whole + 1
    return whole


@njit(cache=True)
def run(
    budget: int,
    window_start: float,
    window_end: float,
    bulk: int,
    mode: int,
    margin: int,
    streams: Words,
    kinds: Ints,
    shapes: Floats,
    means_s: Floats,
    rates: Floats,
    step_s: float,
    edge_first: Ints,
    edge_target: Ints,
    edge_ratio: Floats,
    state: Ints,
    clock: Floats,
    heap_time: Floats,
    heap_core: Ints,
    core_station: Ints,
    core_root: Ints,
    core_arrived: Floats,
    idle: Ints,
    idle_count: Ints,
    idle_first: Ints,
    head: Ints,
    tail: Ints,
    queue: Ints,
    wait_next: Ints,
    wait_root: Ints,
    wait_arrived: Floats,
    root_left: Ints,
    root_arrived: Floats,
    root_done: Floats,
    root_visits: Floats,
    sums: Table,
) -> int:
    """Run events until done, out of budget or short of room; `state` and `clock` carry over.

    `margin` is the largest number of tuples that one event can add. Station `outside` is the
    source: its stream draws the arrivals, and external tuples enter along its edges.
    """
    outside = kinds.shape[0] - 1
    size = state[HEAP_SIZE]
    roots = state[ROOTS]
    free = state[FREE]
    waiting = state[WAITING]
    next_arrival = clock[NEXT_ARRIVAL]
    now = clock[NOW]
    outcome = PAUSED
    for _ in range(budget):
        if wait_next.shape[0] - waiting < margin:
            outcome = MORE_WAITING
            break
        is_departure = size > 0 and heap_time[0] <= next_arrival
        if is_departure:
            now = heap_time[0]
            core = heap_core[0]
            origin = core_station[core]
            first_root = core_root[core]
            root_visits[first_root] += now - core_arrived[core]
            emitters = 1
            node = head[origin]
            if node >= 0:
                head[origin] = wait_next[node]
                if head[origin] < 0:
                    tail[origin] = -1
                queue[origin] -= 1
                waiting -= 1
                arrived = wait_arrived[node]
                core_root[core] = wait_root[node]
                core_arrived[core] = arrived
                wait_next[node] = free
                free = node
                end = service(
                    origin, arrived, now, window_start, window_end,
                    streams, kinds, shapes, means_s, sums,
                )  # fmt: skip
                replace_first(heap_time, heap_core, size, end, core)
            else:
                size -= 1
                replace_first(heap_time, heap_core, size, heap_time[size], heap_core[size])
                idle[idle_first[origin] + idle_count[origin]] = core
                idle_count[origin] += 1
        elif next_arrival < window_end:
            if roots + bulk > root_left.shape[0]:
                outcome = MORE_ROOTS
                break
            now = next_arrival
            origin = outside
            first_root = roots
            emitters = bulk
            for root in range(roots, roots + bulk):
                root_left[root] = 1
                root_arrived[root] = now
                root_visits[root] = 0.0
                root_done[root] = np.inf
            roots += bulk
            gap = bulk * draw(streams, outside, kinds[outside], shapes[outside])
            next_arrival = after(now, gap, rates, step_s, window_start)
            if next_arrival >= window_end:
                next_arrival = np.inf  # from here on the network only drains
        else:
            outcome = DONE
            break

        for root in range(first_root, first_root + emitters):
            left = root_left[root] - 1
            processed = sums[origin, PROCESSED]
            sums[origin, PROCESSED] += 1.0
            # Routed: one point on a circle of length one decides for all edges (see emission.py).
            position = -1.0
            for edge in range(edge_first[origin], edge_first[origin + 1]):
                ratio = edge_ratio[edge]
                whole = int(ratio)
                fraction = ratio - whole
                if mode != ROUTED:
                    count = emitted(
                        streams, outside + 1 + origin, mode, whole, fraction, ratio, processed
                    )
                elif fraction == 0.0:
                    count = whole
                else:
                    if position < 0.0:
                        position = uniform(streams, outside + 1 + origin)
                    position += fraction
                    count = whole
                    if position >= 1.0:
                        position -= 1.0
                        count += 1
                target = edge_target[edge]
                row = sums[target]
                for _copy in range(count):
                    left += 1
                    if window_start <= now < window_end:
                        row[ARRIVALS] += 1.0
                        if row[LAST_ARRIVAL] >= window_start:
                            between = now - row[LAST_ARRIVAL]
                            row[GAPS] += 1.0
                            row[GAP_SUM] += between
                            row[GAP_SQUARES] += between * between
                        row[LAST_ARRIVAL] = now
                    row[OFFERED] += 1.0
                    if idle_count[target] > 0:
                        idle_count[target] -= 1
                        core = idle[idle_first[target] + idle_count[target]]
                        core_root[core] = root
                        core_arrived[core] = now
                        end = service(
                            target, now, now, window_start, window_end,
                            streams, kinds, shapes, means_s, sums,
                        )  # fmt: skip
                        push(heap_time, heap_core, size, end, core)
                        size += 1
                    else:
                        node = free
                        free = wait_next[node]
                        wait_next[node] = -1
                        wait_root[node] = root
                        wait_arrived[node] = now
                        if tail[target] >= 0:
                            wait_next[tail[target]] = node
                        else:
                            head[target] = node
                        tail[target] = node
                        waiting += 1
                        queue[target] += 1
                        if queue[target] > row[LONGEST_QUEUE]:
                            row[LONGEST_QUEUE] = queue[target]
            root_left[root] = left
            if left == 0:
                root_done[root] = now
    state[HEAP_SIZE] = size
    state[ROOTS] = roots
    state[FREE] = free
    state[WAITING] = waiting
    clock[NEXT_ARRIVAL] = next_arrival
    clock[NOW] = now
    return outcome
