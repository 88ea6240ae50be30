"""The compiled part of placement: Elasticutor's Algorithm 1, then improvements by exact costs.

`cores[i, j]` is the number of cores of executor j on node i. The present location of state is
sparse, because an executor has cores on few nodes: entries `begins[j]:begins[j + 1]` of `nodes` and
`shares` are the nodes and shares of executor j. Executors that must stay local are not included:
their cores have been subtracted from the room of their node.

The costs are those of eq. 2 with the old total in the first denominator:
C = sum over j and i of s_j max(0, x~_ij / X~_j - x_ij / X_j).
"""

from typing import Any

import numba as nb
import numpy as np

_TINY = 1e-9
"""Differences in cost below this, relative to the total state, count as rounding."""
DEEP_UP_TO = 2048
"""Up to this many nodes times executors, a change may involve three executors."""


@nb.njit(cache=True)
def cost_of(
    cores: Any, total: int, begins: Any, nodes: Any, shares: Any, state: Any, j: int
) -> float:
    """State of executor j that leaves its node, in bytes."""
    left = 0.0
    for run in range(begins[j], begins[j + 1]):
        left += max(0.0, shares[run] - cores[nodes[run], j] / max(total, 1))
    return float(state[j] * left)


@nb.njit(cache=True)
def _give_cost(cores: Any, totals: Any, state: Any, i: int, j: int) -> float:
    """C-: the cost for executor j of losing a core on node i; for the last core, all its state."""
    if totals[j] <= 1:
        return float(state[j])
    return float(state[j] * (totals[j] - cores[i, j]) / (totals[j] * (totals[j] - 1.0)))


@nb.njit(cache=True)
def _take_cost(cores: Any, totals: Any, state: Any, i: int, j: int) -> float:
    """C+: the cost for executor j of gaining a core on node i; nothing for the first core."""
    if totals[j] == 0:
        return 0.0
    return float(state[j] * (totals[j] - cores[i, j]) / (totals[j] * (totals[j] + 1.0)))


@nb.njit(cache=True)
def evict(cores: Any, totals: Any, free: Any, need: Any, state: Any) -> None:
    """Release cores where a node has fewer than are held: surplus first, then cheapest by C-."""
    for i in range(len(free)):
        while free[i] < 0:
            best = -1
            best_cost = np.inf
            best_surplus = False
            for j in range(len(totals)):
                if cores[i, j] == 0:
                    continue
                surplus = totals[j] > need[j]
                cost = _give_cost(cores, totals, state, i, j)
                if (surplus and not best_surplus) or (surplus == best_surplus and cost < best_cost):
                    best, best_cost, best_surplus = j, cost, surplus
            cores[i, best] -= 1
            totals[best] -= 1
            free[i] += 1


@nb.njit(cache=True)
def _fill(cores: Any, totals: Any, free: Any, home: int, wanted: int, j: int) -> None:
    """Give executor j free cores: at home first, then where most are free."""
    while wanted > 0:
        i = home
        if i < 0 or free[i] <= 0:
            i = int(np.argmax(free))
        taken = min(wanted, free[i])
        if taken <= 0:
            return
        cores[i, j] += taken
        totals[j] += taken
        free[i] -= taken
        wanted -= taken


@nb.njit(cache=True)
def respond(
    cores: Any,
    totals: Any,
    free: Any,
    need: Any,
    begins: Any,
    nodes: Any,
    shares: Any,
    state: Any,
    homes: Any,
    j: int,
) -> float:
    """Choose the best cores for executor j while all others keep theirs; return the bytes moved.

    For a total t the cost is convex in each node's cores, so taking whole shares of t first and
    then the largest fractions is exact. Totals are tried from k_j until shares come out whole.
    """
    begin, end = begins[j], begins[j + 1]
    before = cost_of(cores, totals[j], begins, nodes, shares, state, j)
    if totals[j] >= need[j] and (before <= 0.0 and totals[j] == need[j]):
        return before
    for i in range(len(free)):
        free[i] += cores[i, j]
        cores[i, j] = 0
    room = free.sum()
    held = totals[j]
    totals[j] = 0
    count = end - begin
    least = min(need[j], room)
    if count == 0:
        _fill(cores, totals, free, homes[j], least, j)
        return 0.0
    smallest = 1.0
    for run in range(begin, end):
        smallest = min(smallest, shares[run])
    most = min(room, max(held, least + int(np.ceil(1.0 / smallest)) + 1))
    chosen = least
    chosen_cost = np.inf
    taken = np.zeros(count, np.int64)
    best_taken = np.zeros(count, np.int64)
    fraction = np.zeros(count)
    for total in range(least, most + 1):
        rest = total
        for k in range(count):
            whole = shares[begin + k] * total
            taken[k] = min(free[nodes[begin + k]], int(whole + _TINY))
            fraction[k] = whole - taken[k] if free[nodes[begin + k]] > taken[k] else -1.0
            rest -= taken[k]
        while rest > 0:
            k = int(np.argmax(fraction))
            if fraction[k] <= _TINY:
                break
            taken[k] += 1
            fraction[k] = -1.0
            rest -= 1
        cost = 0.0
        for k in range(count):
            cost += max(0.0, shares[begin + k] - taken[k] / max(total, 1))
        if cost < chosen_cost - _TINY:
            chosen, chosen_cost = total, cost
            best_taken[:] = taken
            if cost <= _TINY:
                break
    for k in range(count):
        i = nodes[begin + k]
        cores[i, j] += best_taken[k]
        free[i] -= best_taken[k]
        totals[j] += best_taken[k]
    _fill(cores, totals, free, homes[j], chosen - totals[j], j)
    return cost_of(cores, totals[j], begins, nodes, shares, state, j)


@nb.njit(cache=True)
def provide(
    cores: Any,
    totals: Any,
    free: Any,
    need: Any,
    begins: Any,
    nodes: Any,
    shares: Any,
    state: Any,
    homes: Any,
    order: Any,
) -> None:
    """Algorithm 1: executors short of cores take free ones, then those others do not need.

    A giver held its cores at the start, so those entries are searched first. A giver elsewhere
    (it has just taken more than it needs, for whole shares) is the last resort.
    """
    where, who = np.nonzero(cores)
    for j in order:
        if totals[j] < need[j]:
            respond(cores, totals, free, need, begins, nodes, shares, state, homes, j)
        while totals[j] < need[j]:
            best_i, best_giver = _giver(cores, totals, need, state, where, who, j)
            if best_giver < 0:
                where, who = np.nonzero(cores)
                best_i, best_giver = _giver(cores, totals, need, state, where, who, j)
            if best_giver < 0:
                break
            _move(cores, totals, free, best_i, best_giver, -1)
            _move(cores, totals, free, best_i, j, 1)


@nb.njit(cache=True)
def _giver(
    cores: Any, totals: Any, need: Any, state: Any, where: Any, who: Any, j: int
) -> tuple[int, int]:
    """Line 9: the node and the giving executor with the smallest sum of C- and C+."""
    best_i, best_giver = -1, -1
    best_cost = np.inf
    for entry in range(len(where)):
        i, giver = where[entry], who[entry]
        if totals[giver] <= need[giver] or cores[i, giver] == 0:
            continue
        cost = _give_cost(cores, totals, state, i, giver) + _take_cost(cores, totals, state, i, j)
        if cost < best_cost:
            best_i, best_giver, best_cost = i, giver, cost
    return best_i, best_giver


@nb.njit(cache=True)
def polish(
    cores: Any,
    totals: Any,
    free: Any,
    need: Any,
    begins: Any,
    nodes: Any,
    shares: Any,
    state: Any,
    homes: Any,
    rounds: int,
) -> float:
    """Change one or two executors at a time as long as that lowers C exactly; return C."""
    count = len(totals)
    costs = np.zeros(count)
    for j in range(count):
        costs[j] = cost_of(cores, totals[j], begins, nodes, shares, state, j)
    scale = _TINY * max(state.max(), 1.0) if count else 0.0
    deep = cores.size <= DEEP_UP_TO
    for _ in range(rounds):
        improved = False
        for j in np.argsort(-costs):
            if costs[j] <= scale:
                continue
            after = respond(cores, totals, free, need, begins, nodes, shares, state, homes, j)
            improved |= after < costs[j] - scale
            costs[j] = after
            while costs[j] > scale and _exchange(
                cores, totals, free, need, begins, nodes, shares, state, costs, j, scale, deep
            ):
                improved = True
        if not improved:
            break
    return float(costs.sum())


@nb.njit(cache=True)
def _openings(
    cores: Any,
    totals: Any,
    free: Any,
    need: Any,
    begins: Any,
    nodes: Any,
    shares: Any,
    state: Any,
    costs: Any,
    j: int,
    price: Any,
    opener: Any,
) -> None:
    """The price of a core on each node: nothing if free, else its cost to an executor with a
    surplus, the third party of an exchange.
    """
    price[:] = np.where(free > 0, 0.0, np.inf)
    opener[:] = -1
    for third in range(len(totals)):
        if third == j or totals[third] <= need[third]:
            continue
        for i in range(len(free)):
            if free[i] > 0 or cores[i, third] == 0:
                continue
            cores[i, third] -= 1
            after = cost_of(cores, totals[third] - 1, begins, nodes, shares, state, third)
            cores[i, third] += 1
            if after - costs[third] < price[i]:
                price[i] = after - costs[third]
                opener[i] = third


@nb.njit(cache=True)
def _exchange(
    cores: Any,
    totals: Any,
    free: Any,
    need: Any,
    begins: Any,
    nodes: Any,
    shares: Any,
    state: Any,
    costs: Any,
    j: int,
    scale: float,
    deep: bool,
) -> bool:
    """Get j the best single core on a node where it has less than its share, if that lowers C.

    The giver just releases it, or gets a core of j elsewhere, or a free one. With `deep`, a third
    executor may also release one that it does not need. j keeps its total or grows by one. Returns
    whether a change was made.
    """
    price = np.where(free > 0, 0.0, np.inf)
    opener = np.full(len(free), -1)
    if deep:
        _openings(cores, totals, free, need, begins, nodes, shares, state, costs, j, price, opener)
    best_gain = scale
    best_i, best_giver, best_back, best_drop = -1, -1, -1, -1
    open_at = int(np.argmin(price))
    for run in range(begins[j], begins[j + 1]):
        i = nodes[run]
        if shares[run] <= cores[i, j] / totals[j] + _TINY:
            continue
        for drop in range(-1, len(free)):
            # j gives up a core on `drop`, or none at all and grows.
            if drop == i or (drop >= 0 and cores[drop, j] == 0):
                continue
            cores[i, j] += 1
            if drop >= 0:
                cores[drop, j] -= 1
            else:
                totals[j] += 1
            mine = costs[j] - cost_of(cores, totals[j], begins, nodes, shares, state, j)
            if mine > best_gain:
                for giver in range(len(totals)):
                    if giver == j or cores[i, giver] == 0:
                        continue
                    cores[i, giver] -= 1
                    totals[giver] -= 1
                    end = begins[giver + 1]
                    # Where the giver goes: nowhere, to j's old core, or to an opening.
                    for option in range(begins[giver] - 2, end + 1):
                        back = -1
                        if option == begins[giver] - 1:
                            back = drop
                        elif option >= begins[giver]:
                            back = nodes[option] if option < end else open_at
                        if option == begins[giver] - 2:
                            if totals[giver] < need[giver]:
                                continue
                        elif back < 0 or back == i:
                            continue
                        paid = 0.0
                        if back >= 0:
                            if back != drop:
                                paid = price[back]
                                if paid == np.inf or opener[back] == giver:
                                    continue
                            cores[back, giver] += 1
                            totals[giver] += 1
                        gain = mine - paid + costs[giver]
                        gain -= cost_of(cores, totals[giver], begins, nodes, shares, state, giver)
                        if gain > best_gain:
                            best_gain = gain
                            best_i, best_giver, best_back, best_drop = i, giver, back, drop
                        if back >= 0:
                            cores[back, giver] -= 1
                            totals[giver] -= 1
                    cores[i, giver] += 1
                    totals[giver] += 1
            cores[i, j] -= 1
            if drop >= 0:
                cores[drop, j] += 1
            else:
                totals[j] -= 1
    if best_i < 0:
        return False
    third = j
    if best_back >= 0 and best_back != best_drop and opener[best_back] >= 0:
        third = opener[best_back]
        _move(cores, totals, free, best_back, third, -1)
    _move(cores, totals, free, best_i, best_giver, -1)
    _move(cores, totals, free, best_i, j, 1)
    if best_drop >= 0:
        _move(cores, totals, free, best_drop, j, -1)
    if best_back >= 0:
        _move(cores, totals, free, best_back, best_giver, 1)
    for one in (j, best_giver, third):
        costs[one] = cost_of(cores, totals[one], begins, nodes, shares, state, one)
    return True


@nb.njit(cache=True)
def _move(cores: Any, totals: Any, free: Any, i: int, j: int, by: int) -> None:
    cores[i, j] += by
    totals[j] += by
    free[i] -= by
