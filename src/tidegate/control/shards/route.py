"""Routes: the map from shards to tasks, which may change (Elasticutor 3.1, Flink-ER eq. 6-8).

The map from keys to shards is a fixed hash. A route has the task of each shard.
Rescaling moves the fewest shards that an even distribution allows, so that little state moves.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from tidegate.columns import IntColumn
from tidegate.errors import AskedWrongly

Route = Sequence[int]
"""Ours are columns: an operator may have thousands of shards, and every batch has a route."""


def even_route(shards: int, tasks: int) -> Route:
    """A new route: each task gets consecutive shards, and sizes differ by at most one.

    This is Flink-ER's eq. 8, with the floor that is missing in print.
    """
    _check(shards, tasks)
    return IntColumn(np.arange(shards) * tasks // shards)


def rescaled(route: Route, tasks: int) -> Route:
    """The route for another number of tasks: even again, with the fewest moves."""
    shards = len(route)
    _check(shards, tasks)
    least, larger = divmod(shards, tasks)
    counts = [0] * tasks
    for task in route:
        if task < tasks:
            counts[task] += 1
    # The fullest tasks get the larger quota, so that they give up fewer shards.
    fullest = sorted(range(tasks), key=lambda task: (-counts[task], task))
    quota = [least] * tasks
    for task in fullest[:larger]:
        quota[task] = least + 1
    room = list(quota)
    kept: list[int | None] = []
    for task in route:
        stays = task < tasks and room[task] > 0
        if stays:
            room[task] -= 1
        kept.append(task if stays else None)
    free = iter([task for task in range(tasks) for _ in range(room[task])])
    return IntColumn([next(free) if task is None else task for task in kept])


def rerouted(route: Route, moves: Mapping[int, int], tasks: int) -> Route:
    """The route after moving single shards; an unknown shard or task is an error."""
    for shard, task in moves.items():
        if not 0 <= shard < len(route):
            raise AskedWrongly(f"there is no shard {shard}; shards are 0 to {len(route) - 1}")
        if not 0 <= task < tasks:
            raise AskedWrongly(
                f"there is no task {task} to move shard {shard} to; tasks are 0 to {tasks - 1}"
            )
    if not moves:
        return route
    changed = np.array(route, np.int64)
    changed[list(moves)] = list(moves.values())
    return IntColumn(changed)


def relabelled(route: Route, homes: Sequence[str], places: Sequence[str]) -> Route:
    """The same groups of shards with other task numbers, so that most shards stay where they are.

    `homes` says where each shard's state is, and `places` where each task will run. Numbering the
    groups is an assignment problem: put as many shards as possible on their home, and among such
    solutions keep as many numbers as possible.
    """
    tasks = len(places)
    number_of_node = {node: number for number, node in enumerate({*homes, *places})}
    shards_of = np.zeros((tasks, len(number_of_node)))
    np.add.at(shards_of, (list(route), [number_of_node[home] for home in homes]), 1.0)
    at_home = shards_of[:, [number_of_node[place] for place in places]]
    at_home[np.diag_indices(tasks)] += 0.5 / tasks  # in total worth less than one shard
    groups, numbers = linear_sum_assignment(-at_home)
    number_of = np.empty(tasks, np.int64)
    number_of[groups] = numbers
    return IntColumn(number_of[np.asarray(route, np.int64)])


def moved(old: Route, new: Route) -> list[int]:
    """The shards that change their task."""
    return [shard for shard, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]


def _check(shards: int, tasks: int) -> None:
    if not 1 <= tasks <= shards:
        raise AskedWrongly(
            f"{tasks} tasks for {shards} shards: give at least 1 task and at most one per shard"
        )
