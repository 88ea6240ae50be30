"""The ways to follow a load whose keys change (Elasticutor 2.2), on a running pipeline.

- `static`: the route never changes.
- `ours`: the control loop moves shards between two micro-batches; nothing stops. Where keys change
  often, it has rows counted before they are routed (`control/shards/preview.py`).
- `ours-each-batch`: the same, but before every batch and by the rows of the last one alone, where
  the loop looks back over seconds. It follows a shuffle faster, and also follows chance.
- `naive`: nothing stops either, but every change spreads all shards anew, wherever they are.
- `resource-centric`: the same balancing as ours, but each change of a route stops the query and
  starts it again, as systems do that repartition an operator's keys.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.apps.full_pipeline import FullPipeline
from tidegate.control.shards.balance import THETA, WORTH_IT, ShardLoads, balance, imbalance
from tidegate.control.shards.route import Route
from tidegate.errors import AskedWrongly, nearest
from tidegate.spark.batch.result import BatchResult

STATIC, OURS, EACH_BATCH, NAIVE = "static", "ours", "ours-each-batch", "naive"
RESOURCE_CENTRIC = "resource-centric"
PARADIGMS = (STATIC, OURS, EACH_BATCH, NAIVE, RESOURCE_CENTRIC)
_EVERY_BATCHES = 2
"""How often to balance: as the control loop does."""


def check_paradigm(paradigm: str) -> None:
    """Refuse a name that is none of them."""
    if paradigm not in PARADIGMS:
        raise AskedWrongly(f"there is no paradigm '{paradigm}'{nearest(paradigm, PARADIGMS)}")


def control_of(paradigm: str, tasks: int, batch_s: float) -> dict[str, Any]:
    """The options of `start` that a paradigm needs: only ours has a control loop."""
    if paradigm != OURS:
        return {}
    # No batch is as short as this target, so the loop decides between any two of them.
    half_ms = max(1, round(500 * batch_s))
    return {"target": f"{half_ms} ms", "cores": tasks, "policy": "static"}


def follow(full: FullPipeline, paradigm: str, seconds: float, batches: int = 0) -> list[int]:
    """Let a pipeline run for some seconds by a paradigm, and at least for some batches.

    Returns the numbers of the batches that were the first after a restart.
    """
    restarts: list[int] = []
    driven = paradigm in (NAIVE, RESOURCE_CENTRIC)
    loads: dict[str, ShardLoads] = {}
    since = 0
    until_s, last = full.results[-1].ended_s + seconds, len(full.results) + batches
    while full.results[-1].ended_s < until_s or len(full.results) < last:
        fresh = full.await_batches(1)
        if not driven:
            continue
        _observe(loads, fresh)
        since += len(fresh)
        # As the control loop does: every other batch, and at once when other keys become hot.
        if since < _EVERY_BATCHES and not any(seen.changed for seen in loads.values()):
            continue
        since = 0
        moves = _wanted(loads, fresh[-1], anew=paradigm == NAIVE)
        if moves and paradigm == RESOURCE_CENTRIC:
            full.again(moves)
            restarts.append(len(full.results))
            continue
        for operator, tasks in moves.items():
            full.run.reroute(operator, tasks)
    return restarts


def balance_each_batch(full: FullPipeline) -> None:
    """Balance before each batch is planned."""
    run = full.run
    (segment,) = run.segments.values()

    def before() -> None:
        if segment.results:
            last = segment.results[-1]
            for operator in balanced_operators(last):
                run.reroute(operator, _moves(shard_rows(last, operator), last, operator))

    segment.before = before


def breaks_s(full: FullPipeline, restarts: list[int]) -> list[float]:
    """From the last batch before each restart to the first one after it."""
    return [
        full.results[first].started_s - full.results[first - 1].ended_s
        for first in restarts
        if first < len(full.results)
    ]


def balanced_operators(result: BatchResult) -> list[str]:
    """The operators of a batch whose shards can move."""
    return [name for name, one in result.plan.operators.items() if one.route and one.tasks > 1]


def shard_rows(result: BatchResult, operator: str) -> npt.NDArray[np.int64]:
    """Rows of each shard in a batch."""
    total = np.zeros(len(result.plan.operators[operator].route), dtype=np.int64)
    for report in result.of(operator):
        if report.shard_rows is not None:
            total[report.shard_rows[0]] += report.shard_rows[1]
    return total


def route_anew(loads: npt.ArrayLike, tasks: int) -> Route:
    """A route that ignores the present one: the fullest shard first, to the emptiest task."""
    load = np.asarray(loads, np.float64)
    # Shards without load are spread too.
    load = load + max(float(load.sum()), 1.0) * 1e-9
    filled = np.zeros(tasks)
    route = np.zeros(len(load), np.int64)
    for shard in np.argsort(-load, kind="stable"):
        route[shard] = np.argmin(filled)
        filled[route[shard]] += load[shard]
    return tuple(route.tolist())


def _observe(loads: dict[str, ShardLoads], fresh: list[BatchResult]) -> None:
    """Learn the loads of the shards from new batches."""
    for result in fresh:
        for operator in balanced_operators(result):
            seen = loads.setdefault(operator, ShardLoads())
            seen.observe(shard_rows(result, operator), result.ended_s)


def _wanted(
    loads: dict[str, ShardLoads], last: BatchResult, *, anew: bool
) -> dict[str, dict[int, int]]:
    """The moves that bring every operator into balance, by the batches of the last seconds."""
    found: dict[str, dict[int, int]] = {}
    for operator in balanced_operators(last):
        seen = loads[operator].loads
        assert seen is not None
        moves = (_moves_anew if anew else _moves)(seen, last, operator)
        if moves:
            found[operator] = moves
    return found


def _moves(loads: npt.ArrayLike, last: BatchResult, operator: str) -> dict[int, int]:
    """The moves for these loads; none if the tasks are balanced, or little would change."""
    plan = last.plan.operators[operator]
    found = balance(loads, plan.route, plan.tasks)
    return dict(found.moves) if found.worth_it else {}


def _moves_anew(loads: npt.ArrayLike, last: BatchResult, operator: str) -> dict[int, int]:
    """The same by a route that is made from nothing."""
    plan = last.plan.operators[operator]
    before = imbalance(loads, plan.route, plan.tasks)
    new = route_anew(loads, plan.tasks)
    if before <= THETA or imbalance(loads, new, plan.tasks) > WORTH_IT * before:
        return {}
    return {shard: task for shard, task in enumerate(new) if task != plan.route[shard]}
