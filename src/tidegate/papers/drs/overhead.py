"""Table II: what a decision of DRS costs, the allocation and the rest of it.

The paper has the processing of measurements beside the allocation. Here tasks and a meter do that
while batches run (`tidegate bench meter`). What is left to a decision is to turn a measurement into
stations and to judge the allocation. Both parts are timed on the rates of logo detection. The paper
ran each 100,000 times and printed the mean; its values are in a drawing that the text lacks.
"""

import time
from collections.abc import Callable

from tidegate.benching import at_most
from tidegate.control.allocation.allocate import assign
from tidegate.control.allocation.drs import DrsFixed
from tidegate.control.bounds import Bounds
from tidegate.control.constraints import Constraints
from tidegate.control.measurement import Measurement, OperatorMeasurement
from tidegate.models.queueing.stations import Queues
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.view.pages.paper import Curve, Picture

K_MAX = (12, 24, 48, 96, 192)
RATE, SERVED = 13.0, (1.6, 1.45, 40.0)
_NAMES = ("extract", "match", "aggregate")
"""The frames per second of figure 6, and those that a core of each operator serves."""


def table_2(asked: Asked) -> Findings:
    """Milliseconds for each K_max. The load grows with it, so that every size is a real choice."""
    times = 300 if asked.quick else 3000
    scaling, deciding = [], []
    for cores in asked.progress.each(K_MAX, lambda one: f"K_max = {one}, {times} times"):
        rate = RATE * cores / 22.0
        queues = Queues.of([rate] * 3, list(SERVED))
        scaling.append(_mean_ms(lambda q=queues, k=cores: assign(q, k), times))  # type: ignore[misc]
        policy, measurement = DrsFixed(cores), _measurement(rate, cores)
        constraints = Constraints(Bounds(1, cores))
        both = _mean_ms(
            lambda p=policy, m=measurement, c=constraints: p.decide(m, c),  # type: ignore[misc]
            times,
        )
        deciding.append(both)
    rest = [max(both - alone, 0.0) for both, alone in zip(deciding, scaling, strict=True)]
    return Findings(
        compared=(
            *(
                Compared(
                    f"K_max {cores}: allocation, rest of the decision (ms)",
                    None,
                    f"{a:.3f}, {b:.3f}",
                )
                for cores, a, b in zip(K_MAX, scaling, rest, strict=True)
            ),
            Compared(
                "a whole decision",
                "mostly below 1 ms, linear in K_max",
                f"{max(deciding):.2f} ms",
            ),
        ),
        aims=(
            at_most("milliseconds of a decision, largest K_max", max(deciding), 1.0),
            at_most(
                "allocation at 192 cores over that at 12, per core",
                scaling[-1] / scaling[0] / (K_MAX[-1] / K_MAX[0]),
                1.0,
            ),
        ),
        pictures=(
            Picture(
                "What a decision costs (table II)",
                "K_max",
                "milliseconds",
                (
                    Curve("allocation", tuple(map(float, K_MAX)), tuple(scaling)),
                    Curve("rest of the decision", tuple(map(float, K_MAX)), tuple(rest)),
                ),
            ),
        ),
    )


def _mean_ms(call: Callable[[], object], times: int) -> float:
    for _ in range(min(times, 50)):
        call()  # compiled code is loaded by the first ones
    begun_s = time.perf_counter()
    for _ in range(times):
        call()
    return 1000.0 * (time.perf_counter() - begun_s) / times


def _measurement(rate: float, cores: int) -> Measurement:
    operators = tuple(
        OperatorMeasurement(
            name=name, arrival_rate=rate, service_rate=served, tasks=max(cores // 3, 1)
        )
        for name, served in zip(_NAMES, SERVED, strict=True)
    )
    return Measurement(
        at_s=0.0,
        interval_s=1.0,
        arrival_rate=rate,
        processed_rate=rate,
        backlog_rows=0.0,
        cores_asked=cores,
        cores_granted=cores,
        saturated=False,
        operators=operators,
    )
