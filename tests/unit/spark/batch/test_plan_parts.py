"""Parts of tasks in plans: written where there are several, and the same for the same route."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.spark.batch.plan import BatchPlan, OperatorPlan, Plans
from tidegate.spark.state.files import Durable


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(1, 9))
def test_shards_of_a_task_are_spread_evenly_over_its_parts(route: list[int], parts: int) -> None:
    found = OperatorPlan(5, tuple(route), parts).part_of
    for task in set(route):
        mine = [part for shard, part in enumerate(found) if route[shard] == task]
        counts = [mine.count(part) for part in range(parts)]
        assert max(counts) - min(counts) <= 1
        assert sum(counts) == route.count(task)


def test_a_plan_keeps_its_parts(tmp_path) -> None:
    plans = Plans(Durable(str(tmp_path)))
    entries = {"a": OperatorPlan(2, (0, 1, 0, 1), 3), "b": OperatorPlan(1, (0, 0))}
    plans.write(BatchPlan(7, 123, entries))
    found = plans.read(7)
    assert found is not None and dict(found.operators) == entries
    (file,) = tmp_path.iterdir()
    assert file.read_text().count("parts") == 1
