"""The plan of a micro-batch, on disk for a replay."""

from tidegate.control.shedding.keep import Keep
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan, Plans
from tidegate.spark.state.files import Durable


def test_plans_are_kept_for_a_replay(tmp_path):
    plans = Plans(Durable(str(tmp_path)))
    for batch_id in range(12):
        plans.write(BatchPlan(batch_id, batch_id * 10, {"n": OperatorPlan(2, (0, 1, 1))}))
        assert plans.read(batch_id) == BatchPlan(
            batch_id, batch_id * 10, {"n": OperatorPlan(2, (0, 1, 1))}
        )
    plans.clean(11)
    assert plans.newest() == plans.read(11)
    assert plans.newest(7) == plans.read(7)
    assert plans.read(3) is None
    assert plans.read(4) is not None


def test_a_replay_takes_the_plan_of_the_newest_owner_before_it(tmp_path):
    folder = Durable(str(tmp_path))
    old, older = Plans(folder, "000002-bb"), Plans(folder, "000001-aa")
    Plans(folder).write(BatchPlan(7, 1))  # by a version that knew no owners
    mine = Plans(folder, "000003-cc")
    assert mine.earlier(7, ["000002-bb", "000001-aa"]) == BatchPlan(7, 1)
    old.write(BatchPlan(7, 2))
    older.write(BatchPlan(7, 3))  # it was paused and wakes up late
    assert mine.earlier(7, ["000002-bb", "000001-aa"]) == BatchPlan(7, 2)
    assert mine.read(7) is None
    assert mine.earlier(8, ["000002-bb", "000001-aa"]) is None


def test_the_plan_of_a_batch_says_what_it_keeps(tmp_path) -> None:
    plans = Plans(Durable(str(tmp_path / "plans")))
    plans.directory.make()
    plans.write(BatchPlan(3, 1, {}, Keep(0.5, {"gold": 1.0})))
    again = plans.read(3)
    assert again == BatchPlan(3, 1, {}, Keep(0.5, {"gold": 1.0}))
    assert again.keep.of(("free", "gold", "other")) == (0.5, 1.0, 0.5)
    assert again.keep.of(()) == (0.5,)
    plans.directory.write_json("0000000004.json", {"batch": 4, "at_us": 1, "operators": {}})
    assert plans.read(4) == BatchPlan(4, 1)
