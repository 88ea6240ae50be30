"""The rows between the operators: instances and answers to the model, and what it sends on.

Instances and answers enter the model by one stream, so they have the same columns. Those that a
kind of row does not use are 0.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from tidegate.apps.vht.packed import CLASSES, Ints

INSTANCE, ANSWER, ASK, FORGET = range(4)
"""Kinds of rows. The model asks the statistics of a leaf for its best splits, and tells them to
forget a leaf that was split. A question is answered for each attribute."""
LOW = tuple(f"low_{label}" for label in range(CLASSES))
HIGH = tuple(f"high_{label}" for label in range(CLASSES))
"""How many instances of each class are on the two sides of a split."""
ANSWERED = ("leaf", "attribute", "cut", "gain", *LOW, *HIGH)
"""The columns of an answer. An attribute goes to the low side if its level is below the cut."""
KEY, TREE = "tree", 0
"""The key of the model: there is one tree."""
_COLUMNS = (KEY, "kind", "seq", "levels", "label", *ANSWERED)
TO_MODEL = ", ".join(f"{name} long" for name in _COLUMNS)
TO_MODEL_SCHEMA = pa.schema([(name, pa.int64()) for name in _COLUMNS])
FROM_MODEL = ("kind", "seq", "leaf", "levels", "label", "nth", "predicted")
FROM_MODEL_SCHEMA = pa.schema([(name, pa.int64()) for name in FROM_MODEL])
"""`nth` is the number of an instance in its leaf, from 1, and the number of instances after which a
leaf asks: the answer counts those up to it, however micro-batches cut the stream."""
GAIN_SCALE = 1 << 20
"""Gains are compared in whole parts of this many, so that two that differ by rounding are equal."""


def instance_rows(seq: Ints, levels: Ints, label: Ints) -> pa.Table:
    """Messages with instances."""
    return _filled(TO_MODEL_SCHEMA, len(seq), {"seq": seq, "levels": levels, "label": label})


def answer_rows(columns: Mapping[str, Ints]) -> pa.Table:
    """Messages with answers. Their number is below all instances, so they are read first."""
    count = len(columns["leaf"])
    marks = {"kind": np.full(count, ANSWER), "seq": np.full(count, -1)}
    return _filled(TO_MODEL_SCHEMA, count, {**marks, **columns})


def leaf_rows(kind: int, leaves: Ints, nth: Ints) -> pa.Table:
    """What the model sends to the statistics of these leaves."""
    marks = {"kind": np.full(len(leaves), kind), "seq": np.full(len(leaves), -1)}
    return _filled(FROM_MODEL_SCHEMA, len(leaves), {**marks, "leaf": leaves, "nth": nth})


def taken_rows(columns: Mapping[str, Ints]) -> pa.Table:
    """Instances that leaves took."""
    return _filled(FROM_MODEL_SCHEMA, len(columns["seq"]), columns)


def _filled(schema: pa.Schema, count: int, columns: Mapping[str, Ints]) -> pa.Table:
    zero = np.zeros(count, dtype=np.int64)
    return pa.table([columns.get(name, zero) for name in schema.names], schema=schema)
