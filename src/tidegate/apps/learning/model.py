"""The model: adds up the gradients of a round, moves the weights, and goes back to all parts.

Rounds are applied in their order, one after the other, whatever order their gradients come in.
Weights are rounded to multiples of 2^-20, so that the margins of the next rounds are exact.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.apps.learning.examples import Floats, Ints, value_lists, value_matrix
from tidegate.apps.learning.gradient import MODEL, model_item
from tidegate.apps.learning.options import PARTS, LearningOptions
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update

RATE = 0.25
"""How far the weights move against the mean gradient."""
WEIGHT_STEP = 2.0**-20
MOST_WEIGHT = 64.0
CURRENT = -1
"""The `round` of the state row that has the weights; its `parts` are the rounds so far."""

_LIST = pa.list_(pa.float64())
_STATE = pa.schema({"round": pa.int64(), "parts": pa.int64(), "right": pa.int64(), "values": _LIST})
_OUTPUT = pa.schema({"model": pa.int64(), "right": pa.int64(), "values": _LIST})


@dataclass(frozen=True, slots=True)
class LearntModel:
    """The keyed function of gradients, with a single key. It emits the model after each round.

    `model` of an emitted row is its version, from 1 on, and never the key of the gradients, 0. So
    no traces of inputs go on from here: an example is done when the model has learnt from it, and
    would else go around the loop for ever.
    """

    options: LearningOptions

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """Fix the schemas."""
        return BoundKeyed(
            update=self.update,
            state=_STATE,
            output=_OUTPUT,
            within="round",
            identity={
                "function": "learnt_model",
                "features": self.options.features,
                "round": self.options.round,
            },
        )

    def update(self, batch: KeyedBatch) -> Update:
        """Add gradients to their rounds, and apply all rounds that are complete."""
        if not batch.rows.num_rows:
            return Update()
        known = _Rounds.of(batch, self.options.features)
        version, steps = int(known.parts[0]), known.complete
        models = self._applied(known.values[0], known.values[1 : 1 + steps])
        known.parts[0], known.values[0] = version + steps, models[-1]
        applied = known.number[1 : 1 + steps]
        drops = applied[np.isin(applied, batch.state["round"].to_numpy())]
        return Update(
            output=pa.table(
                {
                    "model": version + 1 + np.arange(steps),
                    "right": known.right[1 : 1 + steps],
                    "values": value_lists(models[1:]),
                },
                schema=_OUTPUT,
            ),
            upserts=known.rows(np.append(0, np.arange(1 + steps, len(known.number)))),
            drops=pa.table({"model": np.full(len(drops), MODEL), "round": drops}),
        )

    def _applied(self, weights: Floats, gradients: Floats) -> Floats:
        """The weights before all rounds and after each of them."""
        models = [weights]
        for gradient in gradients:
            moved = models[-1] - RATE * gradient / self.options.round
            models.append(rounded(moved))
        return np.stack(models)


@dataclass(frozen=True, slots=True, eq=False)
class _Rounds:
    """The current model, and behind it the rounds that wait for gradients, in their order."""

    number: Ints
    parts: Ints
    """How many parts a round has gradients of. Of the model: how many rounds it has learnt."""
    right: Ints
    values: Floats
    """Sums of gradients; of the model, the weights."""

    @classmethod
    def of(cls, batch: KeyedBatch, features: int) -> "_Rounds":
        """The state and the rows of a batch together. The first model has weights of 0."""
        tables = (batch.state, batch.rows)
        both = np.concatenate([[CURRENT], *(one["round"].to_numpy() for one in tables)])
        number, group = np.unique(both, return_inverse=True)
        size = len(number)
        parts, right = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        values = np.zeros((size, features))
        kept, new = np.split(group[1:], [batch.state.num_rows])
        np.add.at(parts, kept, batch.state["parts"].to_numpy())
        np.add.at(parts, new, 1)
        for place, table in ((kept, batch.state), (new, batch.rows)):
            np.add.at(right, place, table["right"].to_numpy())
            np.add.at(values, place, value_matrix(table["values"], features))
        return cls(number, parts, right, values)

    @property
    def complete(self) -> int:
        """How many of the next rounds have the gradients of all parts."""
        waiting = len(self.number) - 1
        is_next = self.number[1:] == self.parts[0] + np.arange(waiting)
        return int(np.argmin(np.append(is_next & (self.parts[1:] == PARTS), False)))

    def rows(self, chosen: Ints) -> pa.Table:
        """Some of them as rows of the state."""
        return pa.table(
            {
                "model": np.full(len(chosen), MODEL),
                "round": self.number[chosen],
                "parts": self.parts[chosen],
                "right": self.right[chosen],
                "values": value_lists(self.values[chosen]),
            }
        )


def rounded(weights: Floats) -> Floats:
    """Weights of a size and a step that keep all sums exact."""
    near: Floats = np.rint(weights / WEIGHT_STEP) * WEIGHT_STEP
    return np.clip(near, -MOST_WEIGHT, MOST_WEIGHT)


def broadcast(rows: pa.Table) -> Derived:
    """A map from models to a copy for each part: the rows of the loop."""
    parents = np.repeat(np.arange(rows.num_rows), PARTS)
    made = pa.table(
        {
            "part": np.tile(np.arange(PARTS), rows.num_rows),
            "item": model_item(rows["model"].to_numpy())[parents],
            "label": np.zeros(len(parents), dtype=np.int64),
            "values": rows["values"].take(pa.array(parents)),
        }
    )
    return Derived(made, parents)
