"""From a placement to what is done: cores that change hands, by the names of nodes and executors.

Between plan and act a node can go. What was planned on it is left out and said; all else goes on,
and the next plan, made without that node, sees who is short.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.control.placement.place import Counts
from tidegate.errors import AskedWrongly


@dataclass(frozen=True, slots=True)
class Change:
    """Cores that an executor gains on a node, or gives when negative."""

    executor: str
    node: str
    cores: int


@dataclass(frozen=True, slots=True)
class Transition:
    """What to do, in this order: first everyone gives, then everyone takes."""

    changes: tuple[Change, ...]
    notes: tuple[str, ...] = ()
    """What could not be done, for a person to read."""


def transition(
    held: Counts,
    cores: Counts,
    executors: Sequence[str],
    nodes: Sequence[str],
    alive: Collection[str],
) -> Transition:
    """The changes from `held` to `cores` on the nodes that are still `alive`."""
    if held.shape != cores.shape or held.shape != (len(nodes), len(executors)):
        raise AskedWrongly(
            f"assignments of {held.shape} and {cores.shape} do not fit {len(nodes)} nodes and"
            f" {len(executors)} executors; give a row per node and a column per executor"
        )
    there = np.array([node in alive for node in nodes], bool)
    change = cores - held
    where, who = np.nonzero(change * there[:, None])
    order = np.lexsort((who, where, change[where, who] > 0))
    changes = tuple(
        Change(executors[one], nodes[node], int(change[node, one]))
        for node, one in zip(where[order].tolist(), who[order].tolist(), strict=True)
    )
    return Transition(changes, tuple(_gone(cores, executors, nodes, there)))


def _gone(
    cores: Counts, executors: Sequence[str], nodes: Sequence[str], there: np.ndarray
) -> list[str]:
    """One note for each node that has gone with planned cores on it."""
    notes = []
    for node in np.flatnonzero(~there & (cores.sum(axis=1) > 0)).tolist():
        holders = np.flatnonzero(cores[node]).tolist()
        lost = [f"{executors[one]} {cores[node, one]}" for one in holders]
        notes.append(
            f"node '{nodes[node]}' has gone: its planned cores ({', '.join(lost)}) are left out"
            " until the next plan, and the rest goes on"
        )
    return notes
