"""Model and statistics, run batch by batch without Spark, with the loop between batches."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tests.helpers.keyed_by_hand import KeyedByHand
from tidegate.apps.vht.application import predictions
from tidegate.apps.vht.instances import Instances, instance_map
from tidegate.apps.vht.messages import FROM_MODEL_SCHEMA, KEY, TO_MODEL_SCHEMA
from tidegate.apps.vht.model import Model
from tidegate.apps.vht.statistics import AttributeStatistics, slices
from tidegate.apps.vht.verdict import Learned

_SLICE = pa.schema([(name, pa.int64()) for name in ("slot", "kind", "cell", "nth")])


@dataclass
class ByHand:
    """A tree that is learned in pieces; rows wait in two channels for as long as one likes."""

    instances: Instances
    first: int = 0
    to_model: pa.Table = field(default_factory=TO_MODEL_SCHEMA.empty_table)
    to_statistics: pa.Table = field(default_factory=FROM_MODEL_SCHEMA.empty_table)
    predicted: list[pa.Table] = field(default_factory=list)
    most_held: int = 0

    def __post_init__(self) -> None:
        self.model = KeyedByHand(Model(self.instances.options), TO_MODEL_SCHEMA, KEY, "seq")
        self.statistics = KeyedByHand(AttributeStatistics(), _SLICE, "slot")

    def learn(self, count: int) -> None:
        """A micro-batch of the model: so many new instances, and all answers that wait."""
        seq = np.arange(self.first, self.first + count)
        self.first += count
        new = instance_map(self.instances)(pa.table({"seq": seq}))
        answers, self.to_model = self.to_model, TO_MODEL_SCHEMA.empty_table()
        told = self.model.run(pa.concat_tables([new, answers]))
        self.predicted.append(predictions(told).rows)
        self.to_statistics = pa.concat_tables([self.to_statistics, told])
        self.most_held = max(self.most_held, self.held)

    def count(self) -> None:
        """A micro-batch of the statistics: all that the model has sent since the last one."""
        told, self.to_statistics = self.to_statistics, FROM_MODEL_SCHEMA.empty_table()
        made = slices(told, self.instances.options.attributes).rows
        answers = self.statistics.run(made)
        self.to_model = pa.concat_tables([self.to_model, answers])

    def settle(self) -> None:
        """Go on until nothing waits in the loop."""
        self.count()
        while self.to_model.num_rows:
            self.learn(0)
            self.count()

    @property
    def held(self) -> int:
        """How many instances the model holds back."""
        return int((self.model.state["row"].to_numpy() < 0).sum())

    def learned(self) -> Learned:
        return Learned(pa.concat_tables(self.predicted), self.model.state, self.statistics.state)
