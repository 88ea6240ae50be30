"""Routes: even, with the fewest moves, and anchors that stay where they were."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.route import even_route, moved, rerouted, rescaled
from tidegate.errors import AskedWrongly
from tidegate.spark.anchors import spread


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


@given(
    st.lists(st.sampled_from(["a", "b", "c", "gone", None]), max_size=12),
    st.integers(1, 12),
)
def test_a_task_stays_on_its_executor_while_that_works_and_has_room(old, tasks):
    executors = frozenset({"a", "b", "c"})
    places = spread(old, tasks, executors)
    assert len(places) == tasks
    assert set(places) <= executors
    load = Counter(places)
    most = -(-tasks // 3)
    assert max(load.values()) <= most
    for before, place in zip(old, places, strict=False):
        if before in executors and before != place:
            assert load[before] == most, "it left an executor that had room"
