"""One run of the engine: fills its tables, calls it until it is done, and reads the results."""

import math
from collections.abc import Callable, Mapping

import numpy as np

from tidegate.errors import TidegateError
from tidegate.models.queueing.network import SOURCE, Network
from tidegate.models.queueing.traffic import arrival_rates
from tidegate.sim.queueing import engine
from tidegate.sim.queueing.arrivals import ArrivalProcess, expected_tuples
from tidegate.sim.queueing.distributions import Distribution, distribution
from tidegate.sim.queueing.emission import Emission, emission_code
from tidegate.sim.queueing.statistics import Simulation, StationStatistics, batch_means, scv
from tidegate.sim.queueing.tables import Cores, Floats, Ints, Roots, WaitingTuples

EVENTS_PER_CALL = 1 << 20
"""Progress is reported, and Ctrl-C handled, after this many events: a quarter of a second."""
WAITING_AT_FIRST = 4096
"""The initial number of entries for queued tuples; it doubles when they run out."""


class EngineRun:
    """The engine's tables for one run, and the calls of the engine until it is done."""

    def __init__(
        self,
        network: Network,
        allocation: Ints,
        *,
        warm_up_s: float,
        end_s: float,
        seed: int,
        arrivals: ArrivalProcess,
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
        # One stream for the services of each station and one for the arrivals, then as many for
        # their emissions, so that no draw depends on what another station does.
        words = np.random.SeedSequence(seed).generate_state(8 * (count + 1), np.uint64)
        self.streams = words.astype(np.uint64).reshape(2 * (count + 1), 4)
        self.margin = self._most_emitted()
        expected = expected_tuples(network.rate, arrivals, warm_up_s, end_s)
        self.roots = Roots.of(int(expected + 6.0 * math.sqrt(expected)) + 64 + self.bulk)
        self.waiting = WaitingTuples.of(min(WAITING_AT_FIRST, most_waiting) + self.margin)
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
        """The largest number of tuples that one event can put into queues."""
        ratios = self.edge_ratio
        most = ratios + 1.0
        if self.mode == engine.GEOMETRIC:
            most = engine.GEOMETRIC_CAP * ratios + 2.0
        sums = np.add.reduceat(np.append(np.ceil(most), 0.0), self.edge_first[:-1])
        sums[np.diff(self.edge_first) == 0] = 0.0
        sums[-1] *= self.bulk
        return int(sums.max()) + 1

    def to_the_end(self, progress: Callable[[float], None] | None) -> None:
        """Call the engine until it is done, and grow its tables when they are nearly full."""
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
                f"operator '{operator.name}' has {int(self.queue[fullest]):,} tuples queued after"
                f" {self.clock[engine.NOW]:.6g} simulated seconds, more than a run may hold:"
                f" {rate:.6g} tuples a second arrive and {int(self.allocation[fullest])} cores"
                f" complete {self.allocation[fullest] * operator.service_rate:.6g}; give it more"
                " cores or simulate fewer seconds"
            )
        self.waiting.grow(self.state, min(2 * room, self.most_waiting + self.margin))

    def answer(self, seconds: float, seed: int) -> Simulation:
        """The measurements, from the engine's tables."""
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
    """Edges by origin, the source last: each origin's first edge, the targets, the ratios."""
    position = {name: index for index, name in enumerate(network.names)}
    position[SOURCE] = len(network.operators)
    ordered = sorted(network.edges, key=lambda edge: position[edge.origin])
    origins = np.array([position[edge.origin] for edge in ordered], dtype=np.int64)
    first = np.searchsorted(origins, np.arange(len(position) + 1)).astype(np.int64)
    targets = np.array([position[edge.target] for edge in ordered], dtype=np.int64)
    return first, targets, np.array([edge.ratio for edge in ordered], dtype=np.float64)
