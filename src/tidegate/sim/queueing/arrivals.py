"""The arrival process of external tuples: times between them, bulks, and changing rates."""

from dataclasses import dataclass

import numpy as np

from tidegate.errors import AskedWrongly
from tidegate.models.queueing.network import SOURCE, Network
from tidegate.sim.queueing.distributions import Distribution, distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalProcess:
    """The arrival process of external tuples."""

    gaps: Distribution
    """The distribution of the times between arrivals."""
    bulk: int = 1
    """How many external tuples arrive together; the rate of tuples stays the network's."""
    rates: tuple[float, ...] = ()
    """Changing rates: tuples per second in each step after the warm-up; the last one stays."""
    step_s: float = 1.0
    """The length of a step of `rates`."""


def source_gaps(network: Network) -> Distribution:
    """The distribution of external arrivals, from the operator that gets most of them."""
    fed = [edge for edge in network.edges if edge.origin == SOURCE]
    if not fed:
        raise AskedWrongly(f"no edge leaves '{SOURCE}', so no tuple enters; add one")
    target = max(fed, key=lambda edge: edge.ratio).target
    scvs = {operator.name: operator.arrival_scv for operator in network.operators}
    return distribution(scvs[target])


def expected_tuples(rate: float, arrivals: ArrivalProcess, warm_up_s: float, end_s: float) -> float:
    """The expected number of external tuples in a run; `rate` applies if no rates are given."""
    if not arrivals.rates:
        return rate * end_s
    starts = warm_up_s + np.arange(len(arrivals.rates)) * arrivals.step_s
    ends = np.append(starts[1:], max(end_s, float(starts[-1])))
    lengths = np.clip(np.minimum(ends, end_s) - starts, 0.0, None)
    return float(lengths @ np.asarray(arrivals.rates)) + warm_up_s * arrivals.rates[0]
