"""Files, channels and allocations of a run, without Spark."""

import pyarrow as pa
import pytest

from tidegate.control.shards.route import even_route
from tidegate.errors import TidegateError
from tidegate.pipelines.functions import count
from tidegate.pipelines.graph import Keyed, TaskBounds
from tidegate.spark.batch.channel import Log
from tidegate.spark.batch.next_allocation import NextAllocation
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan, Plans
from tidegate.spark.state.files import Durable

ROWS = pa.schema([("k", pa.string())])


def keyed(shards: int = 8) -> Keyed:
    bound = count().bind(ROWS, ("k",))
    return Keyed(
        name="n",
        inputs=("source",),
        schema=bound.output,
        key=("k",),
        rows=ROWS,
        bound=bound,
        shards=shards,
        tasks=TaskBounds(1, shards),
    )


@pytest.mark.parametrize(
    "url, below",
    [
        ("s3://bucket/ck?region=eu-west-1", "s3://bucket/ck/state/op?region=eu-west-1"),
        ("hdfs://host:9000/ck/", "hdfs://host:9000/ck/state/op"),
        ("/data/ck", "/data/ck/state/op"),
    ],
)
def test_a_directory_below_a_url_keeps_its_options(url, below):
    assert Durable(url).below("state").below("op").url == below


def test_a_file_appears_whole_and_nothing_else_does(tmp_path):
    place = Durable(str(tmp_path))
    place.write("a.json", b"{}")
    place.write_json("b.json", {"x": 1})
    assert place.names() == ["a.json", "b.json"]
    assert place.read_json("b.json") == {"x": 1}
    place.write("a.json", b"not json")
    with pytest.raises(TidegateError, match=r"a\.json is not readable JSON; nothing was changed"):
        place.read_json("a.json")
    with pytest.raises(TidegateError, match=r"c\.json is missing"):
        place.read("c.json")


def test_a_channel_hands_a_batch_over_once_and_forgets_what_was_read(tmp_path):
    log = Log(Durable(str(tmp_path)))
    log.make()
    assert log.length() == 0
    log.commit(0, [])
    assert log.length() == 0, "an empty batch wakes nobody"
    for batch_id in (1, 2, 4, 5, 6, 7):
        log.data.write(f"f{batch_id}", b"x")
        log.commit(batch_id, [(f"f{batch_id}", 1)])
    log.commit(2, [("another try", 1)])
    assert log.length() == 8
    assert log.files(0, 8) == ["f1", "f2", "f4", "f5", "f6", "f7"]
    assert log.files(2, 5) == ["f2", "f4"]
    log.forget(8)
    assert log.files(0, 8) == ["f5", "f6", "f7"]
    assert log.data.names() == ["f5", "f6", "f7"]


def test_plans_are_kept_for_a_replay(tmp_path):
    plans = Plans(Durable(str(tmp_path)))
    for batch_id in range(12):
        plans.write(BatchPlan(batch_id, batch_id * 10, {"n": OperatorPlan(2, (0, 1, 1))}))
        assert plans.read(batch_id) == BatchPlan(
            batch_id, batch_id * 10, {"n": OperatorPlan(2, (0, 1, 1))}
        )
    assert plans.newest() == plans.read(11)
    assert plans.read(0) is None


def test_new_numbers_of_tasks_leave_a_rescale_that_came_meanwhile_alone():
    allocation = NextAllocation((keyed(),), tasks=4)
    old = allocation.snapshot()["n"].route
    assert old == even_route(8, 4)
    swapped = tuple({0: 3, 1: 2, 2: 1, 3: 0}[task] for task in old)
    allocation.relabel("n", 4, old, swapped)
    assert allocation.snapshot()["n"].route == swapped
    allocation.rescale("n", 2)
    wished = allocation.snapshot()["n"]
    allocation.relabel("n", 4, old, swapped)
    assert allocation.snapshot()["n"] == wished
    assert set(wished.route) == {0, 1}
