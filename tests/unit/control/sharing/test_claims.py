"""What a pipeline claims has all the costs that its model has learned."""

import dataclasses

import pytest

from tests.helpers.pipeline_worlds import measured
from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.sharing.claims import Claimant
from tidegate.models.microbatch.batch_cost import BatchCost


def test_a_claim_has_the_costs_of_all_segments() -> None:
    """The second segment gets half of the rows, so it counts half."""
    seen = measured(0, rate=1000.0)
    (main,) = seen.segments
    second = dataclasses.replace(main, name="second", arrival_rate=500.0)
    both = dataclasses.replace(seen, segments=(main, second))
    model = PipelineModel()
    model.learn(both)
    cost = BatchCost(fixed_s=0.2, per_task_s=0.01, work_s=1e-3, least_s=0.3, rowless_s=0.1)
    for name in ("main", "second"):
        model.segment(name).cost = cost
        model.segment(name).imbalance.now = 1.0
    load = Claimant(model, 2.0).claim(both).load
    assert load is not None
    assert dataclasses.asdict(load.cost) == pytest.approx(
        {"fixed_s": 0.3, "per_task_s": 0.015, "work_s": 1.5e-3, "least_s": 0.45, "rowless_s": 0.15}
    )


def test_the_learned_costs_are_in_the_record() -> None:
    model = PipelineModel()
    model.learn(measured(0))
    model.segment("main").cost = BatchCost(fixed_s=0.2, work_s=1e-3, least_s=0.3)
    assert model.beliefs()["main.least_s"] == 0.3
