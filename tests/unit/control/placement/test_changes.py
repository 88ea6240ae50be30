"""What is done of a placement, also when a node has gone since it was planned."""

import numpy as np
import pytest

from tidegate.control.placement.changes import CoreChange, transition
from tidegate.errors import AskedWrongly

HELD = np.array([[2, 0], [1, 2], [0, 0]])
CORES = np.array([[1, 0], [1, 1], [1, 2]])
NODES = ("red", "green", "blue")


def test_everyone_gives_before_anyone_takes() -> None:
    found = transition(HELD, CORES, ("a", "b"), NODES, NODES)
    assert found.notes == ()
    assert found.changes == (
        CoreChange("a", "red", -1),
        CoreChange("b", "green", -1),
        CoreChange("a", "blue", 1),
        CoreChange("b", "blue", 2),
    )


def test_a_node_that_vanished_is_said_and_the_rest_goes_on() -> None:
    found = transition(HELD, CORES, ("a", "b"), NODES, {"red", "green"})
    assert found.changes == (CoreChange("a", "red", -1), CoreChange("b", "green", -1))
    (note,) = found.notes
    assert "'blue' is gone" in note and "(a 1, b 2) are skipped" in note


def test_a_node_with_nothing_planned_goes_without_a_word() -> None:
    assert transition(HELD, HELD, ("a", "b"), NODES, {"red", "green"}).notes == ()


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(AskedWrongly, match="a row per node"):
        transition(HELD, CORES, ("a",), NODES, NODES)
