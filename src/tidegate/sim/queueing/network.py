"""Discrete-event simulation of a network of stations with a given allocation.

It measures two times of each external tuple, which answer different questions:

- `latency`: from its arrival until every tuple derived from it is processed. This is DRS's *total
  sojourn time*, and what a user waits for.
- `visit_sum`: the sum of the sojourn times of all visits in its tree. DRS's eq. 4,
  (1/lambda_0) sum lambda_i E[T_i], predicts its mean, so this is the one to compare with theory.

They are equal if a tree never has two tuples at a time (a chain, a routed split, a loop). Where it
branches, the branches run in parallel, and the latency is the smaller of the two.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np

from tidegate.errors import AskedWrongly
from tidegate.models.queueing.network import Network
from tidegate.models.queueing.traffic import arrival_rates
from tidegate.sim.queueing.allocation import allocation_vector
from tidegate.sim.queueing.arrivals import ArrivalProcess, expected_tuples, source_gaps
from tidegate.sim.queueing.distributions import Distribution
from tidegate.sim.queueing.emission import Emission
from tidegate.sim.queueing.engine_run import EngineRun
from tidegate.sim.queueing.statistics import Simulation

MOST_EXTERNAL_TUPLES = 50_000_000
"""The most external tuples of a run; each takes 32 bytes until the end."""
MOST_WAITING = 20_000_000
"""The most tuples in all queues together before a run is aborted as unstable."""
WARM_UP_SHARE = 0.1


def simulate(
    network: Network,
    allocation: Mapping[str, int],
    *,
    seconds: float,
    seed: int = 0,
    warm_up_s: float | None = None,
    arrivals: ArrivalProcess | None = None,
    services: Mapping[str, Distribution] | None = None,
    emission: Emission = "routed",
    most_waiting: int = MOST_WAITING,
    progress: Callable[[float], None] | None = None,
) -> Simulation:
    """Simulate `seconds` after a warm-up (by default a tenth of them), then drain.

    Arrivals stop at the end, and all tuples in the network are completed, so that slow ones count
    too. The same arguments and seed give the same result, bit for bit. Each station has its own
    stream of random numbers, so two allocations of a network get the same arrivals and, visit by
    visit, the same services.
    """
    cores = allocation_vector(network, allocation)
    if arrivals is None:
        arrivals = ArrivalProcess(gaps=source_gaps(network))
    if warm_up_s is None:
        warm_up_s = 0.0 if arrivals.rates else WARM_UP_SHARE * seconds
    if seed < 0:
        raise AskedWrongly(f"a seed must be a whole number of at least 0, not {seed}")
    _check(network, seconds, warm_up_s, arrivals)
    run = EngineRun(
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


def _check(network: Network, seconds: float, warm_up_s: float, arrivals: ArrivalProcess) -> None:
    if not (math.isfinite(seconds) and seconds > 0.0):
        raise AskedWrongly(f"the seconds to simulate must be a number above 0, not {seconds:g}")
    if not (math.isfinite(warm_up_s) and warm_up_s >= 0.0):
        raise AskedWrongly(f"the warm-up must be at least 0 seconds, not {warm_up_s:g}")
    if arrivals.bulk < 1:
        raise AskedWrongly(f"a bulk of arrivals must have at least 1 tuple, not {arrivals.bulk}")
    if not (math.isfinite(arrivals.step_s) and arrivals.step_s > 0.0):
        raise AskedWrongly(
            f"a step of the rates must last more than 0 s, not {arrivals.step_s:g} s"
        )
    for rate in arrivals.rates or (network.rate,):
        if not (math.isfinite(rate) and rate >= 0.0):
            raise AskedWrongly(f"a rate of arrivals must be at least 0, not {rate:g}")
    arrival_rates(network)  # raises for unknown operators, and loops that multiply their tuples
    expected = expected_tuples(network.rate, arrivals, warm_up_s, warm_up_s + seconds)
    if expected > MOST_EXTERNAL_TUPLES:
        raise AskedWrongly(
            f"about {expected:.3g} external tuples would be simulated, more than the"
            f" {MOST_EXTERNAL_TUPLES:,} that a run may hold; give fewer seconds"
        )
