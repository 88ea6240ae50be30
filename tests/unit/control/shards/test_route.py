"""Routes: even, with the fewest moves, and numbered so that shards stay where they are."""

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.shards.route import even_route, moved, relabelled, rerouted, rescaled
from tidegate.errors import AskedWrongly


def sizes(route: tuple[int, ...], tasks: int) -> list[int]:
    counts = Counter(route)
    return sorted(counts[task] for task in range(tasks))


@given(st.integers(1, 300), st.data())
def test_rescaling_is_even_and_moves_the_fewest(shards, data):
    before = data.draw(st.integers(1, shards))
    after = data.draw(st.integers(1, shards))
    old = even_route(shards, before)
    new = rescaled(old, after)
    assert sizes(old, before)[-1] - sizes(old, before)[0] <= 1
    assert sizes(new, after)[-1] - sizes(new, after)[0] <= 1
    # The fewest: every task keeps as much as an even spread lets it keep.
    least, larger = divmod(shards, after)
    held = sorted((Counter(old)[task] for task in range(after)), reverse=True)
    stays = sum(min(count, least + (place < larger)) for place, count in enumerate(held))
    assert len(moved(old, new)) == shards - stays


@given(st.lists(st.integers(0, 9), min_size=1, max_size=64), st.integers(1, 10))
def test_any_route_can_be_rescaled(route, tasks):
    tasks = min(tasks, len(route))
    new = rescaled(tuple(route), tasks)
    assert sizes(new, tasks)[-1] - sizes(new, tasks)[0] <= 1


def test_rerouting_moves_what_it_is_told():
    assert rerouted((0, 0, 1), {0: 1}, 2) == (1, 0, 1)
    with pytest.raises(AskedWrongly, match="no task 2"):
        rerouted((0, 0, 1), {0: 2}, 2)
    with pytest.raises(AskedWrongly, match="at most one per shard"):
        even_route(4, 5)


@given(st.integers(1, 6), st.data())
def test_relabelling_keeps_the_groups_and_the_most_shards_at_home(tasks, data):
    shards = data.draw(st.integers(tasks, 24))
    route = rescaled(tuple(data.draw(st.integers(0, tasks - 1)) for _ in range(shards)), tasks)
    names = st.sampled_from(["a", "b", "c"])
    homes = [data.draw(names) for _ in range(shards)]
    places = [data.draw(names) for _ in range(tasks)]
    new = relabelled(route, homes, places)
    pairs = set(zip(route, new, strict=True))
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})

    def at_home(labels: tuple[int, ...]) -> int:
        return sum(homes[s] == places[labels[t]] for s, t in enumerate(route))

    best = max(at_home(labels) for labels in itertools.permutations(range(tasks)))
    assert sum(homes[s] == places[t] for s, t in enumerate(new)) == best


def test_numbers_change_only_where_that_brings_a_shard_home():
    route = even_route(8, 4)
    assert relabelled(route, ["a"] * 8, ["a"] * 4) == route
    assert relabelled(route, ["b"] * 8, ["a"] * 4) == route
    homes = ["a", "a", "b", "b", "a", "a", "b", "b"]
    assert relabelled(route, homes, ["b", "b", "a", "a"]) == (3, 3, 1, 1, 2, 2, 0, 0)
