"""Compiles the models ahead of their first use: `python -m tidegate.compiled`, once after set-up.

Numba caches what it compiles beside the sources, so the first pipeline, plan or simulation does not
have to wait seconds for it. Functions that are not called here are compiled on their first use.
"""

import numpy as np

from tidegate.control.allocation.allocate import assign, provision
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.placement.place import Executors, place
from tidegate.control.rehearsal import rehearse
from tidegate.control.target import Target
from tidegate.forecast.arma import ArmaForecaster
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.models.queueing.network import SOURCE, Edge, Network, Operator
from tidegate.models.queueing.stations import Queues
from tidegate.sim.microbatch.oracle import OracleSegment, oracle
from tidegate.sim.queueing.network import simulate
from tidegate.workload.profile import constant


def compile_models() -> None:
    """Call everything that is compiled once, on a small case."""
    rehearse(Assembly(target=Target(1.0), bounds=Bounds(1, 8)))
    rehearse(Assembly(target=Target(1.0, 95), bounds=Bounds(1, 8)))
    rehearse(Assembly(target=Target(1.0), bounds=Bounds(1, 8), policy="priced-capacity"))
    queues = Queues.of([5.0, 5.0], [2.0, 9.0])
    assign(queues, 8)
    provision(queues, 1.0)
    chain = Network(
        rate=5.0,
        operators=(Operator(name="a", service_rate=2.0), Operator(name="b", service_rate=9.0)),
        edges=(Edge(origin=SOURCE, target="a", ratio=1.0), Edge(origin="a", target="b", ratio=1.0)),
    )
    simulate(chain, {"a": 4, "b": 1}, seconds=10.0)
    forecaster = ArmaForecaster()
    for minute in range(120):
        forecaster.observe(100.0 + 10.0 * np.sin(minute / 7.0) + minute % 3, 60.0 * minute)
    forecaster.forecast(5)
    executors = Executors.of([3, 3], [1e6, 2e6], [1e3, 2e3], [0, 1])
    place([4, 4], [[1, 0], [0, 1]], executors)
    segment = OracleSegment(cost=BatchCost(fixed_s=0.2, work_s=0.01), imbalances=np.ones(4))
    oracle(constant(100.0), 5.0, [segment], Target(1.0), range(1, 5))


if __name__ == "__main__":
    compile_models()
