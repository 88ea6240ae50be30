"""Turns a placement into changes: cores that executors release and take, by name.

A node may disappear between planning and acting. Changes on it are skipped and noted; the others
go on. The next plan is made without that node and replaces the missing cores.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.control.placement.place import Counts
from tidegate.errors import AskedWrongly


@dataclass(frozen=True, slots=True)
class CoreChange:
    """Cores that an executor takes on a node, or releases if negative."""

    executor: str
    node: str
    cores: int


@dataclass(frozen=True, slots=True)
class Transition:
    """Changes in the order in which to make them: cores are released first, then taken."""

    changes: tuple[CoreChange, ...]
    notes: tuple[str, ...] = ()
    """Changes that could not be made, as sentences for a person."""


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
        CoreChange(executors[one], nodes[node], int(change[node, one]))
        for node, one in zip(where[order].tolist(), who[order].tolist(), strict=True)
    )
    return Transition(changes, tuple(_gone(cores, executors, nodes, there)))


def _gone(
    cores: Counts, executors: Sequence[str], nodes: Sequence[str], there: np.ndarray
) -> list[str]:
    """A note for each node that is gone and had planned cores."""
    notes = []
    for node in np.flatnonzero(~there & (cores.sum(axis=1) > 0)).tolist():
        holders = np.flatnonzero(cores[node]).tolist()
        lost = [f"{executors[one]} {cores[node, one]}" for one in holders]
        notes.append(
            f"node '{nodes[node]}' is gone: its planned cores ({', '.join(lost)}) are skipped"
            " until the next plan"
        )
    return notes
