"""What only 256 cores can show: one elastic executor on ever more nodes, simulated.

The simulator (`sim/placement/elastic.py`) runs the real balancer and the real placement on nodes of
8 cores with the paper's network of 1 Gbit/s, and with moves that take as long as on Spark.
"""

from dataclasses import dataclass, replace

from tidegate.papers.elasticutor.measured_costs import nodes_of
from tidegate.sim.placement.elastic import ElasticOutcome, Experiment, micro, run

NODES, QUICK_NODES = (1, 4, 16, 32), (1, 32)
CORES_EACH = 8
SHARDS = 8192
SECONDS, WARM_UP_S = 40.0, 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one executor is given."""

    row_ms: float = 1.0
    tuple_bytes: int = 128
    state_kb: float = 32.0
    omega: float = 2.0


def experiment(load: Load, nodes: int) -> Experiment:
    """One executor that may use all cores of some nodes."""
    base = micro(load.omega, "executor-centric", tuple_bytes=float(load.tuple_bytes))
    (operator,) = base.operators
    return replace(
        base,
        operators=(replace(operator, work_s=load.row_ms / 1e3),),
        nodes=nodes_of(nodes, CORES_EACH),
        executors=1,
        shards_each=SHARDS,
        shard_bytes=load.state_kb * 1024,
        seconds=SECONDS,
        warm_up_s=WARM_UP_S,
    )


def simulate(load: Load, nodes: int) -> ElasticOutcome:
    """Run it."""
    return run(experiment(load, nodes))
