"""The clocks of executors, by the times that their tasks tell."""

import dataclasses

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.spark.measure.test_operator_meter import report
from tidegate.spark.batch.plan import BatchPlan
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.measure.executor_clocks import with_clocks


@given(
    st.floats(-100.0, 100.0),
    st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)), min_size=1, max_size=9),
)
def test_a_bound_never_exceeds_the_real_difference(
    ahead_s: float, tasks: list[tuple[float, float]]
) -> None:
    """Tasks within a batch of ten seconds, as another clock tells their times."""
    reports = [
        dataclasses.replace(
            report("m", number, 5, 4.0 * long), started_s=1000.0 + 5.0 * begin + ahead_s
        )
        for number, (begin, long) in enumerate(tasks)
    ]
    result = BatchResult(
        segment="main",
        plan=BatchPlan(0, 0),
        replayed=False,
        started_s=1000.0,
        ended_s=1010.0,
        steps_s={},
        reports=tuple(reports),
        executors=1,
    )
    (found,) = with_clocks((), [result])
    assert abs(found.clock_ahead_s) <= abs(ahead_s) + 2e-3
    assert found.clock_ahead_s * ahead_s >= 0.0
    if abs(ahead_s) > 10.0:
        assert np.sign(found.clock_ahead_s) == np.sign(ahead_s)
