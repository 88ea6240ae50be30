"""Placement against the integer optimum of Elasticutor's eq. 2, and what it does when nodes go."""

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from tidegate.control.placement.place import (
    PHI,
    Counts,
    Executors,
    Placement,
    place,
    transition_bytes,
)
from tidegate.errors import AskedWrongly

CASES = 300


def random_case(seed: int) -> tuple[Counts, Counts, Executors]:
    """2 to 4 nodes, 2 to 5 executors, from nearly idle to full, at times with a smaller node."""
    rng = np.random.default_rng(seed)
    nodes, count = int(rng.integers(2, 5)), int(rng.integers(2, 6))
    room = rng.integers(2, 6, nodes)
    held = np.zeros((nodes, count), np.int64)
    for j in range(count):
        for i in rng.integers(0, nodes, rng.integers(0, 4)):
            held[i, j] += held[i].sum() < room[i]
    if rng.random() < 0.3:
        room[rng.integers(nodes)] -= 2
    spare = max(int(room.sum()) - count, 0)
    more = rng.integers(0, count, rng.integers(0, spare + 1))
    cores = 1 + np.bincount(more, minlength=count)
    state = rng.choice([0.0, 1.0, 2.0, 5.0, 10.0, 100.0], count) * rng.uniform(0.5, 1.5, count)
    rate = rng.choice([1e4, 3e5, 1e6, 4e6], count) * cores
    return room, held, Executors.of(cores, state, rate, rng.integers(0, nodes, count))


def optimum(room: Counts, held: Counts, executors: Executors, answer: Placement) -> float | None:
    """Eq. 2 by an integer solver: a binary for each total that an executor may have.

    With the total fixed, shares are linear in the cores: u_ij >= s_j (x~_ij / X~_j - x_ijt / t).
    """
    nodes, count = held.shape
    low: list[float] = []
    high: list[float] = []
    entries: list[tuple[int, int, float]] = []
    cost: list[float] = []
    upper: list[float] = []
    whole: list[int] = []

    def variables(many: int, price: float, most: float, integer: int) -> range:
        begin = len(cost)
        cost.extend([price] * many)
        upper.extend([most] * many)
        whole.extend([integer] * many)
        return range(begin, begin + many)

    def constraint(terms: list[tuple[int, float]], least: float, most: float) -> None:
        entries.extend((len(low), variable, factor) for variable, factor in terms)
        low.append(least)
        high.append(most)

    on_node: list[list[int]] = [[] for _ in range(nodes)]
    for j in range(count):
        out = variables(nodes, 1.0, np.inf, 0)
        others = int(executors.cores.sum() - executors.cores[j])
        totals = range(int(executors.cores[j]), int(room.sum()) - others + 1)
        chosen = variables(len(totals), 0.0, 1.0, 1)
        constraint([(one, 1.0) for one in chosen], 1.0, 1.0)
        kept: list[list[tuple[int, float]]] = [[] for _ in range(nodes)]
        for total, picked in zip(totals, chosen, strict=True):
            cores = variables(nodes, 0.0, np.inf, 1)
            constraint([*((one, 1.0) for one in cores), (picked, -float(total))], 0.0, 0.0)
            for i, one in enumerate(cores):
                far = bool(answer.local[j]) and i != answer.home[j]
                upper[one] = 0.0 if far else float(min(total, room[i]))
                on_node[i].append(one)
                kept[i].append((one, float(executors.state_bytes[j]) / total))
        for i in np.flatnonzero(held[:, j]):
            share = float(executors.state_bytes[j] * held[i, j] / held[:, j].sum())
            constraint([(out[i], 1.0), *kept[i]], share, np.inf)
    for i in range(nodes):
        constraint([(one, 1.0) for one in on_node[i]], 0.0, float(room[i]))
    row, column, factor = zip(*entries, strict=True)
    matrix = coo_array((factor, (row, column)), (len(low), len(cost))).tocsr()
    found = milp(
        cost,
        constraints=LinearConstraint(matrix, low, high),
        integrality=whole,
        bounds=Bounds(0.0, upper),
        options={"mip_rel_gap": 1e-6},
    )
    return float(found.fun) if found.success else None


def check_feasible(room: Counts, executors: Executors, answer: Placement) -> None:
    assert np.all(answer.cores >= 0)
    assert np.all(answer.cores.sum(axis=1) <= room)
    assert np.all(answer.cores.sum(axis=0) >= executors.cores)
    for j in np.flatnonzero(answer.local):
        assert answer.cores[answer.home[j], j] == answer.cores[:, j].sum()


def test_never_worse_than_the_integer_optimum_by_a_tenth() -> None:
    ratios = []
    zeros = 0
    for seed in range(CASES):
        room, held, executors = random_case(seed)
        if room.sum() < executors.cores.sum():
            with pytest.raises(AskedWrongly, match="cores, but the nodes have"):
                place(room, held, executors)
            continue
        answer = place(room, held, executors)
        check_feasible(room, executors, answer)
        best = optimum(room, held, executors, answer)
        assert best is not None
        moved = transition_bytes(held, answer.cores, executors.state_bytes)
        assert moved == pytest.approx(answer.moved_bytes)
        rounding = 1e-6 * max(float(executors.state_bytes.max()), 1.0)
        assert best - rounding <= moved <= 1.1 * best + rounding, f"seed {seed}"
        zeros += best <= rounding
        if best > rounding:
            ratios.append(moved / best)
    assert zeros > 20 and len(ratios) > 100
    assert np.median(ratios) < 1.001


def test_a_small_case_by_hand() -> None:
    """The first executor stays whole; the other's share of node 0 falls from 1/2 to 1/4."""
    answer = place([4, 4], [[2, 2], [0, 2]], Executors.of([3, 4], [9.0, 9.0], [0, 0], [0, 1]))
    assert answer.cores.tolist() == [[3, 1], [0, 3]]
    assert answer.moved_bytes == pytest.approx(9.0 / 4)


def test_free_cores_come_first_and_move_nothing_when_shares_stay() -> None:
    idle = place([8, 8], [[2, 0], [0, 2]], Executors.of([4, 4], [9.0, 9.0], [0, 0], [0, 1]))
    assert idle.cores.tolist() == [[4, 0], [0, 4]]
    assert idle.moved_bytes == 0.0


def test_a_data_heavy_executor_is_brought_home() -> None:
    held = [[1, 3], [3, 1]]
    heavy = Executors.of([4, 4], [1.0, 1.0], [4 * PHI, 1.0], [0, 1])
    answer = place([4, 4], held, heavy)
    assert answer.local.tolist() == [True, False]
    assert answer.cores.tolist() == [[4, 0], [0, 4]]


def test_phi_doubles_until_the_heavy_ones_fit() -> None:
    """Three executors of 3 cores at one home of 4: only the heaviest can stay."""
    rates = np.array([9.0, 3.0, 3.0]) * PHI * 3
    answer = place(
        [4, 8], np.zeros((2, 3), int), Executors.of([3, 3, 3], [1, 1, 1], rates, [0] * 3)
    )
    assert answer.phi_bytes_per_s == 4 * PHI
    assert answer.local.tolist() == [True, False, False]
    assert answer.cores[0, 0] == 3


def test_executors_of_a_node_that_went_find_a_new_home() -> None:
    held = [[2, 0], [1, 2], [0, 0]]
    answer = place([0, 4, 4], held, Executors.of([3, 2], [6.0, 6.0], [9 * PHI, 1.0], [0, 1]))
    assert answer.home.tolist() == [1, 1]
    assert answer.cores[0].sum() == 0
    check_feasible(np.array([0, 4, 4]), Executors.of([3, 2], [6, 6], [9 * PHI, 1], [0, 1]), answer)


@pytest.mark.parametrize(
    ("room", "held", "cores", "home", "says"),
    [
        ([2], [[1]], [3], [0], "need 3 cores, but the nodes have 2"),
        ([2], [[1, 1]], [1], [0], "a row per node"),
        ([2], [[-1]], [1], [0], "negative"),
        ([2], [[1]], [0], [0], "at least one core"),
        ([2], [[1]], [1], [1], "not among the 1 nodes"),
        ([2], [[1]], [1], [0, 0], "columns of equal length"),
    ],
)
def test_what_cannot_be_placed_is_said(
    room: list[int], held: list[list[int]], cores: list[int], home: list[int], says: str
) -> None:
    asked = Executors.of(cores, np.ones(len(cores)), np.ones(len(cores)), home)
    with pytest.raises(AskedWrongly, match=says):
        place(room, held, asked)
