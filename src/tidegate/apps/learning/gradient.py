"""The gradients of a logistic regression, for the examples of each round and part.

An example waits in the state until its part has all examples of the round, and the model that the
round learns from has come around the loop. So a gradient depends on row numbers alone, and neither
on how micro-batches cut the stream nor on how long a model takes.

Margins are sums of exact products. Errors are rounded to multiples of 2^-16, so gradients are exact
sums as well, and the same in any order.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.apps.learning.examples import Floats, Ints, value_lists, value_matrix
from tidegate.apps.learning.options import LearningOptions
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update

MODEL = 0
"""The key of the only model."""
MOST_MARGIN = 30.0
"""The logistic function is 0 or 1 to 13 digits beyond it."""
ERROR_STEP = 2.0**-16

_LIST = pa.list_(pa.float64())
_STATE = pa.schema({"item": pa.int64(), "label": pa.int64(), "values": _LIST})
_OUTPUT = pa.schema(
    {
        "model": pa.int64(),
        "part": pa.int64(),
        "round": pa.int64(),
        "right": pa.int64(),
        "values": _LIST,
    }
)


def model_item(version: Ints) -> Ints:
    """The `item` of a model; version v is the model after v rounds."""
    return -1 - version


def examples_only(rows: pa.Table) -> npt.NDArray[np.float64]:
    """What rows weigh when the operator is stretched: models on their way cost no time."""
    return np.asarray(rows["item"].to_numpy() >= 0, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class PartialGradient:
    """The keyed function of examples and models; it emits a gradient for each round of a part.

    The key is the column `part`. `right` of an emitted row is how many labels the model knew before
    it learnt them.
    """

    options: LearningOptions

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """Fix the schemas."""
        return BoundKeyed(
            update=self.update,
            state=_STATE,
            output=_OUTPUT,
            within="item",
            identity={
                "function": "partial_gradient",
                "features": self.options.features,
                "round": self.options.round,
                "lag": self.options.lag,
            },
        )

    def update(self, batch: KeyedBatch) -> Update:
        """Compute the gradients that can be computed, and keep all other rows."""
        columns = ["part", *_STATE.names]
        both = pa.concat_tables(
            [batch.state.select(columns), batch.rows.select(columns).cast(batch.state.schema)]
        )
        key = np.concatenate([batch.state_key, batch.row_key])
        is_new = np.arange(len(key)) >= len(batch.state_key)
        rounds = self._rounds(both["item"].to_numpy())
        ready = self._ready(key, rounds, both["item"].to_numpy() >= 0)
        kept = np.flatnonzero(is_new & ~ready)
        used = np.flatnonzero(~is_new & ready)
        return Update(
            output=self._gradients(both.filter(pa.array(ready)), key[ready], rounds[ready]),
            upserts=both.take(pa.array(kept)),
            upsert_key=key[kept],
            drops=both.select(["part", "item"]).take(pa.array(used)),
            drop_key=key[used],
        )

    def _rounds(self, item: Ints) -> Ints:
        """The round that an example belongs to, or that learns from a model."""
        return np.where(item >= 0, item // self.options.round, -1 - item + self.options.lag)

    def _ready(
        self, key: Ints, rounds: Ints, is_example: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """For each row whether its part has all that its round needs.

        The first rounds need no model to come: they learn from the one before all learning.
        """
        _, group = np.unique(np.stack([key, rounds]), axis=1, return_inverse=True)
        count = int(group.max(initial=-1)) + 1
        examples = np.bincount(group[is_example], minlength=count)
        models = np.bincount(group[~is_example], minlength=count)
        early = np.zeros(count, dtype=np.bool_)
        early[group] = rounds <= self.options.lag
        complete = (examples == self.options.part_examples) & (early | (models > 0))
        ready: npt.NDArray[np.bool_] = complete[group]
        return ready

    def _gradients(self, rows: pa.Table, key: Ints, rounds: Ints) -> pa.Table:
        """The gradients of complete rounds, one row each."""
        item = rows["item"].to_numpy()
        order = np.lexsort((item, rounds, key))  # a model, if there is one, then its examples
        values = value_matrix(rows["values"], self.options.features)[order]
        is_example = item[order] >= 0
        first = np.flatnonzero(is_example)[:: self.options.part_examples]
        weights = np.zeros((len(first), self.options.features))
        with_model = (first > 0) & ~is_example[first - 1]
        weights[with_model] = values[first[with_model] - 1]
        shape = (len(first), self.options.part_examples, self.options.features)
        known = rows["label"].to_numpy()[order][is_example].reshape(shape[:2])
        gradients, right = gradients_of(values[is_example].reshape(shape), known, weights)
        chosen = order[first]
        return pa.table(
            {
                "model": np.full(len(first), MODEL),
                "part": rows["part"].take(pa.array(chosen)),
                "round": rounds[chosen],
                "right": right,
                "values": value_lists(gradients),
            },
            schema=_OUTPUT,
        )


def gradients_of(examples: Floats, label: Ints, weights: Floats) -> tuple[Floats, Ints]:
    """For each group of examples and its weights: the sum of gradients, and the known labels."""
    margin = np.einsum("gef,gf->ge", examples, weights)
    chance = 1.0 / (1.0 + np.exp(-np.clip(margin, -MOST_MARGIN, MOST_MARGIN)))
    error = np.rint((chance - label) / ERROR_STEP) * ERROR_STEP
    right = ((margin > 0.0) == (label > 0)).sum(axis=1)
    return np.einsum("gef,ge->gf", examples, error), right
