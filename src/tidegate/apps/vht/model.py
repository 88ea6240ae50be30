"""The model aggregator: the keyed operator that has the tree. There is one key, so one task.

The state rows of the tree are its nodes, and the instances that wait for an answer. Their row
numbers are below zero.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.apps.number_columns import matrix_of
from tidegate.apps.vht.messages import (
    ANSWER,
    ANSWERED,
    ASK,
    FORGET,
    FROM_MODEL_SCHEMA,
    INSTANCE,
    KEY,
    TO_MODEL_SCHEMA,
    TREE,
    leaf_rows,
    taken_rows,
)
from tidegate.apps.vht.options import VhtOptions
from tidegate.apps.vht.packed import Ints
from tidegate.apps.vht.tree import (
    ASK_AT,
    ATTRIBUTE,
    HELD,
    NO_SPLIT,
    NODE,
    Nodes,
    hear,
    learn,
    new_tree,
)
from tidegate.pipelines.functions.columns import column_of
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update

ROW = "row"
_INSTANCE = ("levels", "label")
STATE = pa.schema([(name, pa.int64()) for name in (ROW, *NODE, *_INSTANCE)])


@dataclass(frozen=True, slots=True)
class Model:
    """The keyed function; the key is the tree."""

    options: VhtOptions

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """Check the columns of a message."""
        for name in TO_MODEL_SCHEMA.names:
            column_of(rows, name, "model")
        return BoundKeyed(
            update=self.update,
            state=STATE,
            output=FROM_MODEL_SCHEMA,
            within=ROW,
            identity={
                "function": "vht_model",
                "attributes": self.options.attributes,
                "grace": self.options.grace,
                "delay": self.options.delay,
            },
        )

    def update(self, batch: KeyedBatch) -> Update:
        """Hear the answers, then learn from held and new instances in the order of the stream."""
        if not batch.rows.num_rows:
            return Update()
        options = self.options
        kind = batch.rows["kind"].to_numpy()
        before = nodes_of(batch.state, options.grace)
        nodes = _with_room(before)
        hear(nodes, matrix_of(batch.rows.filter(pa.array(kind == ANSWER)), ANSWERED))
        held = batch.state.filter(pa.array(batch.state[ROW].to_numpy() < 0))
        new = batch.rows.filter(pa.array(kind == INSTANCE))
        seq = np.concatenate([~held[ROW].to_numpy(), new["seq"].to_numpy()])
        order = np.argsort(seq)
        levels, label = (
            np.concatenate([held[name].to_numpy(), new[name].to_numpy()])[order]
            for name in _INSTANCE
        )
        count, leaf, nth, predicted, asked, was_split = learn(
            nodes, len(before), levels, label, options.attributes, options.grace, options.delay
        )
        seq, was_held = seq[order], order < held.num_rows
        taken = leaf != HELD
        columns = {"seq": seq, "leaf": leaf, "levels": levels, "label": label}
        columns |= {"nth": nth, "predicted": predicted}
        changed = _changed(before, nodes[:count])
        waits = ~taken & ~was_held
        upserts = pa.concat_tables(
            [
                _state_rows(changed, _columns(nodes[changed], NODE)),
                _state_rows(~seq[waits], {"levels": levels[waits], "label": label[waits]}),
            ]
        )
        again = ~seq[taken & was_held]
        drops = pa.table({KEY: np.full(len(again), TREE), ROW: again})
        return Update(
            output=pa.concat_tables(
                [
                    taken_rows({name: column[taken] for name, column in columns.items()}),
                    leaf_rows(ASK, asked, nodes[asked, ASK_AT]),
                    leaf_rows(FORGET, was_split, np.zeros_like(was_split)),
                ]
            ),
            upserts=upserts,
            drops=drops,
        )


def _state_rows(row: Ints, columns: Mapping[str, Ints]) -> pa.Table:
    """State rows of the tree; columns that are not given are 0."""
    zero = np.zeros(len(row), dtype=np.int64)
    given = {KEY: np.full(len(row), TREE), ROW: row, **columns}
    return pa.table({name: given.get(name, zero) for name in (KEY, *STATE.names)})


def nodes_of(state: pa.Table, grace: int) -> Nodes:
    """The nodes of the tree in a state; without any, a tree that has seen nothing."""
    rows = state.filter(pa.array(state[ROW].to_numpy() >= 0)).sort_by(ROW)
    return matrix_of(rows, NODE) if rows.num_rows else new_tree(grace)


def _with_room(nodes: Nodes) -> Nodes:
    """The nodes, and room for two more for each leaf: a new leaf does not split at once."""
    leaves = int(np.count_nonzero(nodes[:, ATTRIBUTE] == NO_SPLIT))
    return np.concatenate([nodes, np.zeros((2 * leaves, nodes.shape[1]), dtype=np.int64)])


def _changed(before: Nodes, after: Nodes) -> Ints:
    """The numbers of nodes that are new or changed."""
    same = (after[: len(before)] == before).all(axis=1)
    old = np.flatnonzero(~same)
    return np.concatenate([old, np.arange(len(before), len(after))])


def _columns(matrix: Nodes, names: tuple[str, ...]) -> dict[str, Ints]:
    return {name: np.ascontiguousarray(matrix[:, place]) for place, name in enumerate(names)}
