"""The fit of a batch's parts: what it returns predicts the durations that it was given."""

import numpy as np
import pytest

from tidegate.models.microbatch.least_squares import fit_parts

FIXED_S, PER_TASK_S, WORK_S = 0.1, 0.005, 1e-3


def batches(saved: float, least_s: float) -> np.ndarray:
    """Cells of batches that took exactly D = a0 + a1 k + max((1 - g) S, L)."""
    cells = []
    for tasks in (2, 4, 8):
        for each in np.geomspace(20.0, 1500.0, 14):
            function_s = WORK_S * each
            rest_s = FIXED_S + PER_TASK_S * tasks
            duration_s = rest_s + max((1.0 - saved) * function_s, least_s)
            cells.append(
                (tasks, each * tasks, 1.0, duration_s, function_s, 0.0, PER_TASK_S * tasks, 30.0)
            )
    return np.array(cells)


@pytest.mark.parametrize("saved", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("least_s", [0.0, 0.15, 0.4])
def test_exact_batches_are_predicted_by_what_was_fitted_to_them(
    saved: float, least_s: float
) -> None:
    cells = batches(saved, least_s)
    task_s, row_s, fixed_s, per_task_s, found_least_s, found_saved = fit_parts(cells)
    tasks, rows, duration_s = cells[:, 0], cells[:, 1], cells[:, 3]
    function_s = task_s + row_s * rows / tasks
    predicted_s = fixed_s + per_task_s * tasks
    predicted_s += np.maximum((1.0 - found_saved) * function_s, found_least_s)
    error = np.abs(predicted_s / duration_s - 1.0)
    assert error.mean() <= 0.02
    assert error.max() <= 0.06
