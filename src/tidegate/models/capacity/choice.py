"""Chooses between the two capacity curves, and where to measure to tell them apart (MST III-A2)."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from tidegate.models.capacity.curves import CapacityCurve, FitRefused, fit
from tidegate.models.capacity.samples import Samples
from tidegate.models.capacity.shapes import Shape


def disagreements(
    first: CapacityCurve,
    second: CapacityCurve,
    *,
    threshold: float = 0.1,
    count: int = 3,
    without: Collection[int] = (),
) -> list[int]:
    """Machine counts worth a validation sample: where the two curves differ most (III-A2).

    They are not training counts and not in `without`, the curves differ there by more than
    `threshold` (relative to their mean), and the largest difference comes first. Counts are at
    least a tenth of the range apart, so that no two of them sample the same peak of the difference.
    """
    limit = min(first.max_machines, second.max_machines)
    m = np.arange(1, limit + 1)
    one, other = first.mean(m), second.mean(m)
    apart = np.abs(one - other) / np.maximum((np.abs(one) + np.abs(other)) / 2, 1e-300)
    apart[np.isin(m, list(first.machines | second.machines | set(without)))] = 0.0
    picked: list[int] = []
    for index in np.argsort(-apart, kind="stable"):
        if apart[index] <= threshold or len(picked) == count:
            break
        if all(abs(int(m[index]) - other_m) >= limit / 10 for other_m in picked):
            picked.append(int(m[index]))
    return picked


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen curve, and why it was chosen."""

    model: CapacityCurve
    reason: str
    errors: dict[str, float]
    """Root mean squared error of each curve on the samples that decided."""


def candidates(
    samples: Samples, max_machines: int = 128, *, only: Shape | None = None
) -> tuple[dict[Shape, CapacityCurve], str]:
    """The curves that a choice is made from, and what was refused."""
    shapes = tuple(Shape) if only is None else (only,)
    training = list(samples)
    curves: dict[Shape, CapacityCurve] = {}
    refused: list[str] = []
    for shape in shapes:
        try:
            curves[shape] = fit(training, shape, max_machines)
        except FitRefused:
            refused.append(shape.value)
    if curves:
        return curves, f"{' and '.join(refused)} refused" if refused else ""
    rising = {one: fit(training, one, max_machines, constrained=True) for one in shapes}
    return rising, f"{' and '.join(refused)} refused, refitted among rising curves"


def choose(
    samples: Samples,
    validation: Samples | None = None,
    max_machines: int = 128,
    *,
    only: Shape | None = None,
) -> Choice:
    """Choose the curve that fits better (III-A2), and fit it to all samples.

    The error on the validation samples decides, which should be taken where the curves disagree
    (see `disagreements`); without any, the training error decides. A curve whose fit is refused is
    out. If both are, both are fitted again among the rising curves. `only` is the shape that was
    chosen before, by a calibration; then there is no other.
    """
    training = list(samples)
    checks = list(validation or [])
    curves, reason = candidates(training, max_machines, only=only)
    judged_on = checks or training
    m = np.array([pair[0] for pair in judged_on], dtype=np.float64)
    measured = np.array([pair[1] for pair in judged_on])
    errors = {
        shape.value: float(np.sqrt(np.mean((curve.mean(m) - measured) ** 2)))
        for shape, curve in curves.items()
    }
    shape = min(curves, key=lambda s: errors[s.value])
    if len(curves) == 2:
        judged = "validation" if checks else "training"
        reason = f"{reason}; smaller {judged} error".removeprefix("; ")
    elif only is not None and not reason:
        reason = "chosen by a calibration"
    chosen = curves[shape]
    for pair in checks:
        chosen.observe(*pair)
    return Choice(chosen, f"{shape.value}: {reason}", errors)
