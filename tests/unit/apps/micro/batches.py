"""The calculator without Spark: batches of tuples, and a state that is kept between them."""

import numpy as np
import pyarrow as pa

from tidegate.apps.micro.calculator import PART, STATE_SCHEMA, Calculator
from tidegate.apps.micro.generator import generator
from tidegate.apps.micro.options import MicroOptions
from tidegate.pipelines.keyed import KeyedBatch
from tidegate.workload.profile import Profile
from tidegate.workload.rows import rows_between

SEED = 5


def tuples(profile: Profile, options: MicroOptions, first: int, end: int) -> pa.Table:
    """The tuples of a range of rows."""
    rows = rows_between(profile, options.distribution, SEED, first, end)
    made = pa.table({"key": rows.key, "value": rows.value, "seq": rows.seq})
    return generator(options, SEED)(made)


class Kept:
    """The state of a calculator as a dictionary, as simple as it can be."""

    def __init__(self, options: MicroOptions) -> None:
        self._bound = Calculator(options, SEED).bind(
            pa.schema({"key": pa.int64(), "value": pa.float64(), "payload": pa.binary()}), ("key",)
        )
        self._rows: dict[tuple[int, int], dict[str, object]] = {}

    def add(self, rows: pa.Table) -> int:
        """Run a batch; returns how many state rows it wrote."""
        keys, row_key = np.unique(rows["key"].to_numpy(), return_inverse=True)
        place = {int(key): number for number, key in enumerate(keys)}
        found = [row for (key, _), row in self._rows.items() if key in place]
        update = self._bound.update(
            KeyedBatch(
                rows=rows,
                keys=pa.table({"key": keys}),
                row_key=row_key.astype(np.int64),
                state=self._table(found),
                state_key=np.array([place[int(str(row["key"]))] for row in found], dtype=np.int64),
                at_us=0,
            )
        )
        assert update.upserts is not None and update.upsert_key is not None
        assert update.upserts["key"].to_pylist() == keys[update.upsert_key].tolist()
        for row in update.upserts.to_pylist():
            self._rows[row["key"], row[PART]] = row
        return update.upserts.num_rows

    @property
    def state(self) -> pa.Table:
        """All state rows."""
        return self._table(list(self._rows.values()))

    def _table(self, rows: list[dict[str, object]]) -> pa.Table:
        schema = pa.schema([pa.field("key", pa.int64()), *STATE_SCHEMA])
        return pa.Table.from_pylist(rows, schema=schema)
