"""Whether a run learned the tree of the sequential reference, and how good its predictions were."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.apps.application import Verdict
from tidegate.apps.vht.instances import Instances
from tidegate.apps.vht.model import ROW, nodes_of
from tidegate.apps.vht.packed import CLASSES, MOST_ATTRIBUTES
from tidegate.apps.vht.sequential import Path, SequentialTree
from tidegate.apps.vht.statistics import CELLS, counts_of
from tidegate.apps.vht.tree import (
    ASK_AT,
    ATTRIBUTE,
    CUT,
    HIGH,
    LOW,
    NO_SPLIT,
    SEEN,
    TAKEN,
    WAITS,
    Nodes,
)


@dataclass(frozen=True, slots=True)
class Learned:
    """What a run left behind."""

    predictions: pa.Table | None
    """The columns seq, label and predicted."""
    model: pa.Table
    statistics: pa.Table
    """The states of the two operators."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What is the same in every run of a node, whatever its number: where it is, what it knows."""

    path: Path
    split: tuple[int, int] | None
    seen: tuple[int, ...]
    taken: int
    ask_at: int
    waits: bool
    counts: bytes
    """The statistics of its attributes; those of a node that was split are forgotten."""


def judged(
    learned: Learned, instances: Instances, arrived: int, peer: Sequence[int] | None = None
) -> Verdict:
    """Compare with the reference; `peer` has the predictions of another tree on the same stream.

    Answers are right if they are those of the sequential tree. How accurate a tree is depends on
    the stream, so its accuracy is a figure beside the peer's, and no part of the verdict.
    """
    seq = np.arange(arrived, dtype=np.int64)
    levels, labels = instances.levels(seq), instances.labels(seq)
    reference = SequentialTree(instances.options)
    expected = [
        reference.predicted(packed, label)
        for packed, label in zip(levels.tolist(), labels.tolist(), strict=True)
    ]
    faults = [
        *_wrong_predictions(learned.predictions, labels.tolist(), expected),
        *_wrong_tree(learned, instances, reference),
    ]
    accuracy = _share(np.array(expected) == labels)
    figures = {
        "instances": float(arrived),
        "nodes": float(sum(1 for _ in reference.nodes())),
        "accuracy": round(accuracy, 4),
        "best_possible": round(_share(instances.concept(levels) == labels), 4),
    }
    beside = f"accuracy {accuracy:.3f}"
    if peer is not None:
        others = _share(np.array(peer) == labels)
        figures["river_accuracy"] = round(others, 4)
        beside += f" beside river's {others:.3f}"
    said = "; ".join([*(faults or ["as by a sequential tree"]), beside])
    return Verdict(
        correct=not faults,
        said=f"{arrived:,} predictions and a tree of {figures['nodes']:.0f} nodes: {said}",
        figures=figures,
    )


def _share(right: npt.NDArray[np.bool_]) -> float:
    return float(right.mean()) if len(right) else 0.0


def _wrong_predictions(rows: pa.Table | None, labels: list[int], expected: list[int]) -> list[str]:
    """Every instance must be predicted once, as the reference predicts it."""
    columns = ("seq", "label", "predicted")
    found = (
        [] if rows is None else sorted(zip(*(rows[c].to_pylist() for c in columns), strict=True))
    )
    if found == list(zip(range(len(labels)), labels, expected, strict=True)):
        return []
    wrong = sum(predicted != expected[seq] for seq, _, predicted in found)
    return [f"{len(found)} predictions of {len(labels)} instances, {wrong} of them not as expected"]


def _wrong_tree(learned: Learned, instances: Instances, reference: SequentialTree) -> list[str]:
    """Both trees must have the same nodes, which know the same."""
    faults = []
    if held := int(np.count_nonzero(learned.model[ROW].to_numpy() < 0)):
        faults.append(f"{held} instances are still held back")
    nodes = nodes_of(learned.model, instances.options.grace)
    found = {one.path: one for one in _facts(nodes, learned.statistics)}
    expected = {one.path: one for one in _expected(reference)}
    if wrong := sum(found.get(one) != expected.get(one) for one in found.keys() | expected.keys()):
        faults.append(f"{wrong} nodes are not those of the sequential tree")
    leaves = set(np.flatnonzero(nodes[:, ATTRIBUTE] == NO_SPLIT).tolist())
    slots = (learned.statistics["slot"].to_numpy() // MOST_ATTRIBUTES).tolist()
    if left := sum(leaf not in leaves for leaf in slots):
        faults.append(f"{left} statistics of nodes that were split are still there")
    return faults


def _facts(nodes: Nodes, statistics: pa.Table) -> Iterator[NodeFacts]:
    """The nodes of a run."""
    by_slot = dict(zip(statistics["slot"].to_pylist(), counts_of(statistics), strict=True))
    waiting: list[tuple[Path, int]] = [((), 0)]
    while waiting:
        path, number = waiting.pop()
        node = nodes[number].tolist()
        is_leaf = node[ATTRIBUTE] == NO_SPLIT
        slots = range(number * MOST_ATTRIBUTES, (number + 1) * MOST_ATTRIBUTES)
        counts = [by_slot[slot] for slot in slots if slot in by_slot] if is_leaf else []
        if not is_leaf:
            waiting += [((*path, False), node[LOW]), ((*path, True), node[HIGH])]
        yield NodeFacts(
            path,
            None if is_leaf else (node[ATTRIBUTE], node[CUT]),
            tuple(node[SEEN : SEEN + CLASSES]),
            node[TAKEN],
            node[ASK_AT],
            bool(node[WAITS]),
            np.array(counts, dtype=np.int64).tobytes(),
        )


def _expected(reference: SequentialTree) -> Iterator[NodeFacts]:
    """The nodes of the reference."""
    for path, node in reference.nodes():
        is_leaf = node.children is None
        counts = np.array(node.counts, dtype=np.int64).reshape(-1, CELLS)
        yield NodeFacts(
            path,
            None if is_leaf else (node.attribute, node.cut),
            tuple(node.seen),
            node.taken,
            node.ask_at,
            node.best is not None,
            counts.tobytes() if is_leaf and node.taken else b"",
        )
