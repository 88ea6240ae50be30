"""Chooses between the two capacity curves, and where to measure to tell them apart (MST III-A2)."""

from dataclasses import dataclass

import numpy as np

from tidegate.models.capacity.curves import CapacityCurve, FitRefused, fit
from tidegate.models.capacity.machines import Samples
from tidegate.models.capacity.shapes import Shape


def disagreements(
    first: CapacityCurve,
    second: CapacityCurve,
    *,
    threshold: float = 0.1,
    count: int = 3,
) -> list[int]:
    """Machine counts worth a validation sample: where the two curves differ most (III-A2).

    They are not training counts, the curves differ there by more than `threshold` (relative to
    their mean), and the largest difference comes first. Counts are at least a tenth of the range
    apart, so that no two of them sample the same peak of the difference.
    """
    limit = min(first.max_machines, second.max_machines)
    m = np.arange(1, limit + 1)
    one, other = first.mean(m), second.mean(m)
    apart = np.abs(one - other) / np.maximum((np.abs(one) + np.abs(other)) / 2, 1e-300)
    apart[np.isin(m, list(first.machines | second.machines))] = 0.0
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


def choose(samples: Samples, validation: Samples | None = None, max_machines: int = 128) -> Choice:
    """Choose the curve that fits better (III-A2), and fit it to all samples.

    The error on the validation samples decides, which should be taken where the curves disagree
    (see `disagreements`); without any, the training error decides. A curve whose fit is refused is
    out. If both are, both are fitted again among the rising curves.
    """
    training = list(samples)
    checks = list(validation or [])
    curves: dict[Shape, CapacityCurve] = {}
    refused: list[str] = []
    for shape in Shape:
        try:
            curves[shape] = fit(training, shape, max_machines)
        except FitRefused:
            refused.append(shape.value)
    reason = f"{' and '.join(refused)} refused" if refused else ""
    if not curves:
        reason = "both refused, refitted among rising curves"
        curves = {s: fit(training, s, max_machines, constrained=True) for s in Shape}
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
    chosen = curves[shape]
    for pair in checks:
        chosen.observe(*pair)
    return Choice(chosen, f"{shape.value}: {reason}", errors)
