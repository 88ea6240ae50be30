"""The calculator: a count, a sum and a checksum for each key, beside state that only has a size.

The checksum depends on the order of a key's tuples, so it finds a tuple that is lost, comes twice
or comes too early. It is a polynomial in the tuples' digests modulo 2**64. Multiplication
distributes, so a whole batch is added at once, and any cut into batches gives the same number.

The state of a key has two rows. The totals are written with every batch. The payload, which gives a
shard its size (Elasticutor 5.1: 32 KB), is written when the key is first seen, and read with every
batch.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.apps.micro.generator import STATE, Words, binary_column, payload_words, words_of
from tidegate.apps.micro.options import MicroOptions
from tidegate.errors import AskedWrongly
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update

NAME = "calculator"
FACTOR = 0x9FB21C651E98DF25
"""An odd number, so that no factor of two is lost from the checksum."""
PART = "part"
TOTALS, PAYLOAD = 0, 1
"""The two state rows of a key."""
STATE_SCHEMA = pa.schema(
    {
        PART: pa.int8(),
        "count": pa.int64(),
        "total": pa.float64(),
        "checksum": pa.int64(),
        "payload": pa.binary(),
    }
)


@dataclass(frozen=True, slots=True)
class Calculator:
    """The keyed function; the key is a column of whole numbers called `key`."""

    options: MicroOptions
    seed: int

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """Fix the schemas."""
        missing = {"key", "value", "payload"} - set(rows.names)
        if missing or key != ("key",):
            raise AskedWrongly("the calculator needs the columns key, value and payload, and key=")
        return BoundKeyed(
            update=self.update,
            state=STATE_SCHEMA,
            output=pa.schema({"key": pa.int64(), "count": pa.int64()}),
            within=PART,
            identity={
                "function": NAME,
                "payload": self.options.payload,
                "key_bytes": self.options.key_bytes,
            },
        )

    def update(self, batch: KeyedBatch) -> Update:
        """Add the tuples of a batch to the totals of their keys."""
        count, total, checksum = _before(batch)
        added = np.bincount(batch.row_key, minlength=len(count))
        total += np.bincount(
            batch.row_key, weights=batch.rows["value"].to_numpy(), minlength=len(count)
        )
        digests = digests_of(words_of(batch.rows["payload"], self.options.payload))
        checksum = chained(checksum, digests, batch.row_key, added)
        count += added
        totals = _rows(batch.keys, TOTALS, count, total, checksum, None)
        numbers = np.arange(len(count))
        new = np.flatnonzero(batch.is_new())
        if not (self.options.key_bytes and len(new)):
            return Update(upserts=totals, upsert_key=numbers)
        keys = batch.keys.take(pa.array(new))
        payload = binary_column(
            payload_words(keys["key"].to_numpy(), self.seed, self.options.key_bytes, STATE)
        )
        zero = np.zeros(len(new), np.int64)
        payloads = _rows(
            keys, PAYLOAD, zero, zero.astype(np.float64), zero.view(np.uint64), payload
        )
        return Update(
            upserts=pa.concat_tables([totals, payloads]), upsert_key=np.append(numbers, new)
        )


def digests_of(content: Words) -> Words:
    """One number for each row of words: the polynomial with the words as its coefficients."""
    coefficients = powers(content.shape[1])[::-1]
    return content @ coefficients


def chained(
    before: Words,
    digests: Words,
    row_key: npt.NDArray[np.int64],
    added: npt.NDArray[np.int64],
) -> Words:
    """The checksums after more tuples: checksum = checksum * FACTOR + digest, for each in turn."""
    if not len(row_key):
        return before
    power = powers(int(added.max()) + 1)
    order = np.argsort(row_key, kind="stable")
    ends = np.cumsum(added)
    sorted_key = row_key[order]
    behind = ends[sorted_key] - 1 - np.arange(len(order))
    terms = digests[order] * power[behind]
    present = np.flatnonzero(added)
    sums = np.zeros_like(before)
    sums[present] = np.add.reduceat(terms, (ends - added)[present])
    return before * power[added] + sums


def powers(count: int) -> Words:
    """FACTOR to the power of 0, 1, ... modulo 2**64."""
    factors = np.full(count, FACTOR, dtype=np.uint64)
    factors[:1] = 1
    made: Words = np.multiply.accumulate(factors)
    return made


def _before(
    batch: KeyedBatch,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], Words]:
    """The totals of all keys before this batch; zero for a new key."""
    size = batch.keys.num_rows
    count = np.zeros(size, np.int64)
    total = np.zeros(size, np.float64)
    checksum = np.zeros(size, np.uint64)
    mine = pc.equal(batch.state[PART], TOTALS)
    found = batch.state.select(["count", "total", "checksum"]).filter(mine)
    place = batch.state_key[mine.to_numpy()]
    count[place] = found["count"].to_numpy()
    total[place] = found["total"].to_numpy()
    checksum[place] = found["checksum"].to_numpy().view(np.uint64)
    return count, total, checksum


def _rows(
    keys: pa.Table,
    part: int,
    count: npt.NDArray[np.int64],
    total: npt.NDArray[np.float64],
    checksum: Words,
    payload: pa.Array | None,
) -> pa.Table:
    size = keys.num_rows
    return pa.table(
        {
            "key": keys["key"],
            PART: np.full(size, part, np.int8),
            "count": count,
            "total": total,
            "checksum": checksum.view(np.int64),
            "payload": pa.nulls(size, pa.binary()) if payload is None else payload,
        }
    )
