"""What a calibration may be asked, and how far it predicts."""

from typing import Any

import pytest

from tidegate.errors import AskedWrongly
from tidegate.models.capacity.calibration_plan import CalibrationPlan


def test_it_predicts_twice_as_far_as_it_measures_unless_told() -> None:
    assert CalibrationPlan().predicted == 12
    assert CalibrationPlan(checks=(5, 8)).predicted == 16
    assert CalibrationPlan(checks=(5, 8), most=9).predicted == 9


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"counts": ()}, "give the numbers of cores"),
        ({"counts": (0, 1)}, "--counts 0"),
        ({"checks": (0,)}, "--check 0"),
        ({"checks": (4,)}, "--check 4: the fit uses 4 cores as well"),
        ({"repeats": 0}, "--repeats 0"),
        ({"most_samples": 5}, "6 samples are needed"),
        ({"batch_s": 0.01}, "give 100ms to 10min"),
        ({"most": 5}, "--most 5"),
        ({"validations": -1}, "--validations -1"),
    ],
)
def test_what_cannot_be_measured_is_refused(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(AskedWrongly, match=says):
        CalibrationPlan(**asked)
