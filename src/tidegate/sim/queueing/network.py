"""A discrete-event simulation of a network of stations: what an allocation really gives.

Two times are measured for each external tuple, and they answer different questions:

- `latency`: from its arrival until every tuple derived from it is processed, which is DRS's *total
  sojourn time* and what a user waits for;
- `visit_sum`: the sojourn times of all visits in its tree, added up. Its mean is what DRS's eq. 4,
  (1/lambda_0) sum lambda_i E[T_i], predicts, so this is the one to compare with theory.

They are equal while a tree has no two tuples at a time (a chain, a routed split, a loop); where it
branches, branches run side by side, and the latency is the shorter of the two.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.errors import AskedWrongly, TidegateError, nearest
from tidegate.models.queueing.network import SOURCE, Network
from tidegate.models.queueing.stations import Queues
from tidegate.models.queueing.traffic import arrival_rates
from tidegate.sim.queueing import engine
from tidegate.sim.queueing.distributions import Distribution, distribution
from tidegate.sim.queueing.emission import Emission, emission_code
from tidegate.sim.queueing.statistics import ConfidenceInterval, StationStatistics, batch_means, scv
from tidegate.sim.queueing.tables import Cores, Floats, Ints, Roots, Waiting

MOST_EXTERNAL_TUPLES = 50_000_000
"""Each takes 32 bytes until the end of the run."""
MOST_WAITING = 20_000_000
"""Tuples that may wait in all queues together before a run is given up as unstable."""
EVENTS_PER_CALL = 1 << 20
"""About a quarter of a second: how often progress is told and Ctrl-C is heard."""
WAITING_AT_FIRST = 4096
"""Places for waiting tuples to begin with; they double when they run out."""
WARM_UP_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """How external tuples come, beside their rate."""

    gaps: Distribution
    """Times between arrivals."""
    bulk: int = 1
    """External tuples that arrive together; the rate of tuples stays the network's."""
    rates: tuple[float, ...] = ()
    """Tuples per second in each step after the warm-up, if they change; the last one holds on."""
    step_s: float = 1.0
    """Length of a step of `rates`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What was measured after the warm-up, over external tuples that arrived within `seconds`."""

    network: Network
    allocation: tuple[int, ...]
    seconds: float
    seed: int
    latency: ConfidenceInterval
    """Seconds until every derived tuple was done (DRS's total sojourn time)."""
    visit_sum: ConfidenceInterval
    """Seconds summed over all visits, which eq. 4 predicts."""
    completed: int
    visits: int
    """Visits of all stations in the whole run, the warm-up included."""
    stations: tuple[StationStatistics, ...]
    arrived_s: Floats
    """Arrival of each measured external tuple, in order, with the end of the warm-up as zero."""
    latencies_s: Floats
    """Its latency."""
    visit_sums_s: Floats
    """Its sum over visits."""

    def quantile_s(self, share: float) -> float:
        """The latency that this share of the external tuples stayed within."""
        if not self.latencies_s.size:
            return math.nan
        return float(np.quantile(self.latencies_s, share))


def source_gaps(network: Network) -> Distribution:
    """The external arrivals' distribution, from the operator that the source feeds most."""
    fed = [edge for edge in network.edges if edge.origin == SOURCE]
    if not fed:
        raise AskedWrongly(f"no edge leaves '{SOURCE}', so no tuple enters; add one")
    target = max(fed, key=lambda edge: edge.ratio).target
    scvs = {operator.name: operator.arrival_scv for operator in network.operators}
    return distribution(scvs[target])


def allocation_vector(network: Network, allocation: Mapping[str, int]) -> tuple[int, ...]:
    """Cores in the order of the network's operators, every one of them at least one."""
    for name in allocation:
        if name not in network.names:
            raise AskedWrongly(
                f"the allocation names an unknown operator '{name}'{nearest(name, network.names)}"
            )
    missing = [name for name in network.names if name not in allocation]
    if missing:
        raise AskedWrongly(
            f"the allocation gives no cores to {', '.join(repr(name) for name in missing)};"
            " every operator needs at least one"
        )
    for name, cores in allocation.items():
        if isinstance(cores, bool) or not isinstance(cores, int | np.integer) or cores < 1:
            raise AskedWrongly(
                f"operator '{name}' needs a whole number of cores from 1 upwards, not {cores!r}"
            )
    return tuple(int(allocation[name]) for name in network.names)


def unstable_stations(network: Network, allocation: Sequence[int]) -> dict[str, int]:
    """Operators that cannot keep up with the network's rate, with the fewest cores that could."""
    needed = Queues.of_network(network).stable_from
    return {
        name: int(fewest)
        for name, fewest, cores in zip(network.names, needed, allocation, strict=True)
        if cores < fewest
    }


def simulate(
    network: Network,
    allocation: Mapping[str, int],
    *,
    seconds: float,
    seed: int = 0,
    warm_up_s: float | None = None,
    arrivals: Arrivals | None = None,
    services: Mapping[str, Distribution] | None = None,
    emission: Emission = "routed",
    most_waiting: int = MOST_WAITING,
    progress: Callable[[float], None] | None = None,
) -> Simulation:
    """Simulate `seconds` after a warm-up (a tenth of them unless told), then drain.

    Arrivals stop at the end, and all that is in the network is completed: nothing is cut off, so
    the slow tuples are counted too. The same arguments and seed give the same answer, bit for bit;
    each station has its own stream of random numbers, so two allocations of a network see the same
    arrivals and, visit by visit, the same services.
    """
    cores = allocation_vector(network, allocation)
    if arrivals is None:
        arrivals = Arrivals(gaps=source_gaps(network))
    if warm_up_s is None:
        warm_up_s = 0.0 if arrivals.rates else WARM_UP_SHARE * seconds
    if seed < 0:
        raise AskedWrongly(f"a seed is a whole number from 0 upwards, not {seed}")
    _check(network, seconds, warm_up_s, arrivals)
    run = _Run(
        network,
        np.asarray(cores, dtype=np.int64),
        warm_up_s=warm_up_s,
        end_s=warm_up_s + seconds,
        seed=seed,
        arrivals=arrivals,
        services=services or {},
        emission=emission,
        most_waiting=most_waiting,
    )
    run.to_the_end(progress)
    return run.answer(seconds, seed)


def _check(network: Network, seconds: float, warm_up_s: float, arrivals: Arrivals) -> None:
    if not (math.isfinite(seconds) and seconds > 0.0):
        raise AskedWrongly(f"the seconds to simulate must be a number above 0, not {seconds:g}")
    if not (math.isfinite(warm_up_s) and warm_up_s >= 0.0):
        raise AskedWrongly(f"the warm-up must be a number of seconds from 0, not {warm_up_s:g}")
    if arrivals.bulk < 1:
        raise AskedWrongly(f"a bulk of arrivals has 1 tuple or more, not {arrivals.bulk}")
    if not (math.isfinite(arrivals.step_s) and arrivals.step_s > 0.0):
        raise AskedWrongly(f"a step of the rates lasts more than 0 s, not {arrivals.step_s:g}")
    for rate in arrivals.rates or (network.rate,):
        if not (math.isfinite(rate) and rate >= 0.0):
            raise AskedWrongly(f"a rate of arrivals must be a number from 0 upwards, not {rate:g}")
    arrival_rates(network)  # refuses unknown operators and loops that multiply their own tuples
    expected = _expected_tuples(network.rate, arrivals, warm_up_s, warm_up_s + seconds)
    if expected > MOST_EXTERNAL_TUPLES:
        raise AskedWrongly(
            f"about {expected:.3g} external tuples would be simulated, more than the"
            f" {MOST_EXTERNAL_TUPLES:,} that a run may hold; ask for fewer seconds"
        )


def _expected_tuples(rate: float, arrivals: Arrivals, warm_up_s: float, end_s: float) -> float:
    if not arrivals.rates:
        return rate * end_s
    starts = warm_up_s + np.arange(len(arrivals.rates)) * arrivals.step_s
    ends = np.append(starts[1:], max(end_s, float(starts[-1])))
    lengths = np.clip(np.minimum(ends, end_s) - starts, 0.0, None)
    return float(lengths @ np.asarray(arrivals.rates)) + warm_up_s * arrivals.rates[0]


class _Run:
    """One run: the engine's tables, and calls of the engine until it is done."""

    def __init__(
        self,
        network: Network,
        allocation: Ints,
        *,
        warm_up_s: float,
        end_s: float,
        seed: int,
        arrivals: Arrivals,
        services: Mapping[str, Distribution],
        emission: Emission,
        most_waiting: int,
    ) -> None:
        self.network, self.allocation = network, allocation
        self.warm_up_s, self.end_s = warm_up_s, end_s
        self.mode, self.bulk = emission_code(emission), arrivals.bulk
        self.most_waiting = most_waiting
        count = allocation.size
        shapes = [
            services.get(operator.name) or distribution(operator.service_scv)
            for operator in network.operators
        ]
        shapes.append(arrivals.gaps)
        self.kinds = np.array([each.code for each in shapes], dtype=np.int64)
        self.shapes = np.array([each.shape for each in shapes])
        self.means_s = np.array([1.0 / each.service_rate for each in network.operators])
        self.rates = np.array(arrivals.rates or (network.rate,), dtype=np.float64)
        self.step_s = arrivals.step_s
        self.edge_first, self.edge_target, self.edge_ratio = _edges(network)
        # A stream each for the services of every station and the arrivals, then one each for the
        # emissions of the same, so that no draw depends on what another station does.
        words = np.random.SeedSequence(seed).generate_state(8 * (count + 1), np.uint64)
        self.streams = words.astype(np.uint64).reshape(2 * (count + 1), 4)
        self.margin = self._most_emitted()
        expected = _expected_tuples(network.rate, arrivals, warm_up_s, end_s)
        self.roots = Roots.of(int(expected + 6.0 * math.sqrt(expected)) + 64 + self.bulk)
        self.waiting = Waiting.of(min(WAITING_AT_FIRST, most_waiting) + self.margin)
        self.cores = Cores.of(allocation)
        self.head = np.full(count, -1, dtype=np.int64)
        self.tail = np.full(count, -1, dtype=np.int64)
        self.queue = np.zeros(count, dtype=np.int64)
        self.sums = np.zeros((count + 1, engine.FIELDS))
        self.sums[:, engine.LAST_ARRIVAL] = -1.0
        self.state = np.zeros(4, dtype=np.int64)
        first = self.bulk * engine.draw(self.streams, count, self.kinds[-1], self.shapes[-1])
        start = engine.after(0.0, first, self.rates, self.step_s, warm_up_s)
        self.clock = np.array([0.0, start if start < end_s else math.inf])

    def _most_emitted(self) -> int:
        """The most tuples that one event can put into queues."""
        ratios = self.edge_ratio
        most = ratios + 1.0
        if self.mode == engine.GEOMETRIC:
            most = engine.GEOMETRIC_CAP * ratios + 2.0
        sums = np.add.reduceat(np.append(np.ceil(most), 0.0), self.edge_first[:-1])
        sums[np.diff(self.edge_first) == 0] = 0.0
        sums[-1] *= self.bulk
        return int(sums.max()) + 1

    def to_the_end(self, progress: Callable[[float], None] | None) -> None:
        """Call the engine until nothing is left, giving it room when it asks."""
        while True:
            outcome = self._call()
            if outcome == engine.MORE_WAITING:
                self._grow_waiting()
            elif outcome == engine.MORE_ROOTS:
                self.roots.grow(2 * self.roots.left.size)
            elif progress is not None:
                done = outcome == engine.DONE
                progress(1.0 if done else min(1.0, float(self.clock[engine.NOW]) / self.end_s))
            if outcome == engine.DONE:
                return

    def _call(self) -> int:
        cores, waiting, roots = self.cores, self.waiting, self.roots
        return int(
            engine.run(
                EVENTS_PER_CALL, self.warm_up_s, self.end_s, self.bulk, self.mode, self.margin,
                self.streams, self.kinds, self.shapes, self.means_s, self.rates, self.step_s,
                self.edge_first, self.edge_target, self.edge_ratio, self.state, self.clock,
                cores.heap_time, cores.heap_core, cores.station, cores.root, cores.arrived,
                cores.idle, cores.idle_count, cores.idle_first, self.head, self.tail, self.queue,
                waiting.following, waiting.root, waiting.arrived,
                roots.left, roots.arrived, roots.done, roots.visits, self.sums,
            )
        )  # fmt: skip

    def _grow_waiting(self) -> None:
        room = self.waiting.following.size
        if room >= self.most_waiting + self.margin:
            fullest = int(self.queue.argmax())
            operator = self.network.operators[fullest]
            rate = arrival_rates(self.network)[fullest]
            raise TidegateError(
                f"operator '{operator.name}' has {int(self.queue[fullest]):,} tuples waiting after"
                f" {self.clock[engine.NOW]:.6g} simulated seconds, more than a run may hold:"
                f" {rate:.6g} tuples a second arrive and {int(self.allocation[fullest])} cores"
                f" complete {self.allocation[fullest] * operator.service_rate:.6g}; give it more"
                " cores or simulate fewer seconds"
            )
        self.waiting.grow(self.state, min(2 * room, self.most_waiting + self.margin))

    def answer(self, seconds: float, seed: int) -> Simulation:
        """What was measured, from the engine's tables."""
        count = int(self.state[engine.ROOTS])
        arrived = self.roots.arrived[:count]
        first = int(np.searchsorted(arrived, self.warm_up_s))
        latencies = self.roots.done[first:count] - arrived[first:]
        sums = self.roots.visits[first:count].copy()
        return Simulation(
            network=self.network,
            allocation=tuple(int(cores) for cores in self.allocation),
            seconds=seconds,
            seed=seed,
            latency=batch_means(latencies),
            visit_sum=batch_means(sums),
            completed=count - first,
            visits=int(self.sums[:-1, engine.OFFERED].sum()),
            stations=tuple(self._station(index) for index in range(self.allocation.size)),
            arrived_s=arrived[first:] - self.warm_up_s,
            latencies_s=latencies,
            visit_sums_s=sums,
        )

    def _station(self, index: int) -> StationStatistics:
        row = self.sums[index]
        window_s = self.end_s - self.warm_up_s
        visits = float(row[engine.VISITS])
        cores = int(self.allocation[index])
        return StationStatistics(
            name=self.network.operators[index].name,
            cores=cores,
            arrivals=int(row[engine.ARRIVALS]),
            arrival_rate=float(row[engine.ARRIVALS]) / window_s,
            utilisation=float(row[engine.BUSY_SUM]) / (cores * window_s),
            mean_wait_s=float(row[engine.WAIT_SUM]) / visits if visits else math.nan,
            mean_sojourn_s=float(row[engine.SOJOURN_SUM]) / visits if visits else math.nan,
            mean_queue=float(row[engine.QUEUE_SUM]) / window_s,
            longest_queue=int(row[engine.LONGEST_QUEUE]),
            arrival_scv=scv(*row[engine.GAPS : engine.GAP_SQUARES + 1].tolist()),
            service_scv=scv(visits, *row[engine.SERVICE_SUM : engine.SERVICE_SQUARES + 1].tolist()),
        )


def _edges(network: Network) -> tuple[Ints, Ints, Floats]:
    """Edges by origin, the source last: where each origin's begin, their targets, their ratios."""
    position = {name: index for index, name in enumerate(network.names)}
    position[SOURCE] = len(network.operators)
    ordered = sorted(network.edges, key=lambda edge: position[edge.origin])
    origins = np.array([position[edge.origin] for edge in ordered], dtype=np.int64)
    first = np.searchsorted(origins, np.arange(len(position) + 1)).astype(np.int64)
    targets = np.array([position[edge.target] for edge in ordered], dtype=np.int64)
    return first, targets, np.array([edge.ratio for edge in ordered], dtype=np.float64)
