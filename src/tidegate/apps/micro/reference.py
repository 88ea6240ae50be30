"""The sequential reference: the same rows, one after the other, in plain Python numbers."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.apps.application import Verdict
from tidegate.apps.micro.calculator import FACTOR, PART, PAYLOAD, TOTALS
from tidegate.apps.micro.generator import (
    STATE,
    TUPLES,
    binary_column,
    first_keys,
    payload_words,
)
from tidegate.apps.micro.options import MicroOptions
from tidegate.workload.profile import Profile
from tidegate.workload.rows import rows_between

_MASK = 2**64 - 1
_ROWS_AT_A_TIME = 65_536
_KEYS_AT_A_TIME = 1000


@dataclass(slots=True)
class Totals:
    """What the calculator should have for a key."""

    count: int = 0
    total: float = 0.0
    checksum: int = 0


def reference(rate: Profile, options: MicroOptions, seed: int, arrived: int) -> dict[int, Totals]:
    """The totals of every key that the first `arrived` rows bring."""
    found: dict[int, Totals] = {}
    for first in range(0, arrived, _ROWS_AT_A_TIME):
        end = min(first + _ROWS_AT_A_TIME, arrived)
        rows = rows_between(rate, options.distribution, seed, first, end)
        keys = first_keys(rows.seq, rows.key, options).tolist()
        content = payload_words(rows.seq, seed, options.payload, TUPLES)
        digest = np.zeros(len(keys), dtype=np.uint64)
        for column in content.T:
            digest = digest * np.uint64(FACTOR) + column
        for key, value, number in zip(keys, rows.value.tolist(), digest.tolist(), strict=True):
            one = found.setdefault(key, Totals())
            one.count += 1
            one.total += value
            one.checksum = (one.checksum * FACTOR + number) & _MASK
    return found


def compare(
    state: pa.Table, expected: dict[int, Totals], options: MicroOptions, seed: int
) -> Verdict:
    """Whether the calculator's state is what the reference says, payloads included."""
    totals = state.filter(pc.equal(state[PART], TOTALS))
    wrong = _wrong_totals(totals, expected)
    payloads = state.filter(pc.equal(state[PART], PAYLOAD)).sort_by("key")
    wrong_payloads = _wrong_payloads(payloads, expected, options, seed)
    rows = sum(one.count for one in expected.values())
    said = (
        f"counts, sums and checksums of {len(expected)} keys over {rows} rows equal a sequential"
        " computation, and so do the payloads of their state"
        if not wrong and not wrong_payloads
        else f"{wrong} of {len(expected)} keys have another count, sum or checksum than a"
        f" sequential computation over {rows} rows, and {wrong_payloads} another payload"
    )
    figures = {
        "rows": float(rows),
        "keys": float(len(expected)),
        "wrong_keys": float(wrong),
        "wrong_payloads": float(wrong_payloads),
        "state_bytes": float(pc.sum(pc.binary_length(payloads["payload"])).as_py() or 0),
    }
    return Verdict(correct=not wrong and not wrong_payloads, said=said, figures=figures)


def _wrong_totals(state: pa.Table, expected: dict[int, Totals]) -> int:
    """Keys that are wrong, missing or too many."""
    columns = (state[name].to_pylist() for name in ("key", "count", "total", "checksum"))
    found = {
        key: Totals(count, total, checksum & _MASK)
        for key, count, total, checksum in zip(*columns, strict=True)
    }
    again = int(state.num_rows) - len(found)
    return again + sum(
        found.get(key) != expected.get(key) for key in found.keys() | expected.keys()
    )


def _wrong_payloads(
    state: pa.Table, expected: dict[int, Totals], options: MicroOptions, seed: int
) -> int:
    if not options.key_bytes:
        return int(state.num_rows)
    keys = np.array(sorted(expected), dtype=np.int64)
    wrong = 0
    if not np.array_equal(state["key"].to_numpy(), keys):
        wrong = len(set(state["key"].to_pylist()) ^ set(expected)) or 1
        state = state.filter(pc.is_in(state["key"], pa.array(keys)))
    for first in range(0, state.num_rows, _KEYS_AT_A_TIME):
        part = state.slice(first, _KEYS_AT_A_TIME)
        made = payload_words(part["key"].to_numpy(), seed, options.key_bytes, STATE)
        same = pc.equal(part["payload"], binary_column(made)).fill_null(False)
        wrong += len(same) - (pc.sum(same).as_py() or 0)
    return wrong
