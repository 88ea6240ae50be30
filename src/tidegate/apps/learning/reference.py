"""Learns from the examples one after the other, in plain Python, and compares a run with that."""

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.apps.application import Verdict
from tidegate.apps.learning.examples import features, labels
from tidegate.apps.learning.gradient import ERROR_STEP, MOST_MARGIN
from tidegate.apps.learning.model import MOST_WEIGHT, RATE, WEIGHT_STEP
from tidegate.apps.learning.options import LearningOptions


@dataclass(frozen=True, slots=True)
class ExpectedModel:
    """The model after a round."""

    weights: list[float]
    right: int
    """Labels of the round that an earlier model knew before they were learnt."""


def expected_models(arrived: int, options: LearningOptions, seed: int) -> list[ExpectedModel]:
    """The models after each round that is complete."""
    models = [ExpectedModel([0.0] * options.features, 0)]
    for number in range(arrived // options.round):
        numbers = np.arange(number * options.round, (number + 1) * options.round, dtype=np.int64)
        found = features(numbers, options, seed)
        given = labels(numbers, found, seed).tolist()
        known = models[max(0, number - options.lag)].weights
        gradient, right = _gradient(found.tolist(), given, known)
        moved = (
            weight - RATE * slope / options.round
            for weight, slope in zip(models[-1].weights, gradient, strict=True)
        )
        models.append(ExpectedModel([_rounded(weight) for weight in moved], right))
    return models[1:]


def _gradient(
    examples: list[list[float]], given: list[int], weights: list[float]
) -> tuple[list[float], int]:
    """The sum of the gradients, example by example, and how many labels the weights know."""
    total = [0.0] * len(weights)
    right = 0
    for values, label in zip(examples, given, strict=True):
        margin = sum(weight * value for weight, value in zip(weights, values, strict=True))
        bounded = min(max(margin, -MOST_MARGIN), MOST_MARGIN)
        error = round((1.0 / (1.0 + math.exp(-bounded)) - label) / ERROR_STEP) * ERROR_STEP
        right += (margin > 0.0) == (label == 1)
        total = [slope + error * value for slope, value in zip(total, values, strict=True)]
    return total, right


def _rounded(weight: float) -> float:
    near = round(weight / WEIGHT_STEP) * WEIGHT_STEP
    return min(max(near, -MOST_WEIGHT), MOST_WEIGHT)


def compare(
    told: pa.Table | None, expected: list[ExpectedModel], arrived: int, options: LearningOptions
) -> Verdict:
    """Whether the models that were told are the expected ones, each once."""
    rows = [] if told is None else told.select(["model", "right", "values"]).to_pylist()
    found = {row["model"]: ExpectedModel(row["values"], row["right"]) for row in rows}
    wanted = dict(enumerate(expected, start=1))
    again = len(rows) - len(found)
    wrong = sum(found.get(one) != wanted.get(one) for one in found.keys() | wanted.keys())
    what = f"{len(expected):,} models from {arrived:,} examples"
    faults = [
        *([f"{wrong} are missing or wrong"] if wrong else []),
        *([f"{again} were told twice"] if again else []),
    ]
    late = expected[-(-len(expected) // 2) :] or expected
    accuracy = sum(one.right for one in late) / max(len(late) * options.round, 1)
    return Verdict(
        correct=not faults,
        said=(
            f"{what}: "
            + ("; ".join(faults) or "as learnt example by example")
            + f"; in the later half, {accuracy:.1%} of the labels were known beforehand"
        ),
        figures={
            "examples": float(arrived),
            "models": float(len(expected)),
            "accuracy": accuracy,
        },
    )
