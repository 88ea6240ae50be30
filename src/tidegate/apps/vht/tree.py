"""The model: the nodes of the tree, and the loop that takes instances one after the other.

Compiled, because each instance is predicted by a tree that has learned from all instances before
it. A leaf asks its statistics for the best splits after every `grace` instances. The answer counts
when the leaf has taken `delay` further ones, whenever it comes: until then the leaf goes on, and
after that it holds instances back. What a leaf does thus depends on the instances that reach it and
on nothing else, and micro-batches may cut the stream anywhere.
"""

import numpy as np
import numpy.typing as npt
from numba import njit

from tidegate.apps.vht.messages import ANSWERED, GAIN_SCALE
from tidegate.apps.vht.options import DELTA, TIE
from tidegate.apps.vht.packed import BITS, CLASSES, LEVELS, Ints

Nodes = npt.NDArray[np.int64]
"""The tree: a row for each node, the root first."""

_SIDES = ("low", "high")
NODE = (
    *("attribute", "cut", *_SIDES, "taken", "ask_at", "waits", "answers"),
    *("gain", "best_attribute", "best_cut", "second_gain"),
    *(f"seen_{label}" for label in range(CLASSES)),
    *(f"best_{side}_{label}" for side in _SIDES for label in range(CLASSES)),
)
"""The columns of a node: its split, if it has one, and the nodes on both sides; how many instances
it took; after how many it asks or asked, and whether it waits for that answer to count; how many
attributes have answered, and the two best of them; how often it saw each class, and how often each
is on the two sides of the best split."""
ATTRIBUTE, CUT, LOW, HIGH, TAKEN, ASK_AT, WAITS, ANSWERS = range(8)
GAIN, BEST_ATTRIBUTE, BEST_CUT, SECOND_GAIN = range(8, 12)
SEEN = 12
BEST_SIDES = SEEN + CLASSES
NO_SPLIT = -1
"""The attribute of a leaf."""
HELD = -1
"""Instead of a leaf: the instance is held back."""

_LEAF_OF, _ATTRIBUTE_OF, _CUT_OF, _GAIN_OF = range(4)
_SIDES_OF = ANSWERED.index("low_0")
_LOG = -np.log(DELTA)


def new_tree(grace: int) -> Nodes:
    """A tree that has seen nothing: one leaf."""
    nodes = np.zeros((1, len(NODE)), dtype=np.int64)
    nodes[0, ATTRIBUTE] = NO_SPLIT
    nodes[0, ASK_AT] = grace
    return nodes


@njit(cache=True)
def hear(nodes: Nodes, answers: npt.NDArray[np.int64]) -> None:
    """Add answers (columns: `ANSWERED`) to what their leaves have heard, in any order."""
    for one in answers:
        leaf = nodes[one[_LEAF_OF]]
        first = leaf[ANSWERS] == 0
        leaf[ANSWERS] += 1
        gain, attribute = one[_GAIN_OF], one[_ATTRIBUTE_OF]
        if first or gain > leaf[GAIN] or (gain == leaf[GAIN] and attribute < leaf[BEST_ATTRIBUTE]):
            leaf[SECOND_GAIN] = 0 if first else leaf[GAIN]
            leaf[GAIN] = gain
            leaf[BEST_ATTRIBUTE] = attribute
            leaf[BEST_CUT] = one[_CUT_OF]
            for place in range(2 * CLASSES):
                leaf[BEST_SIDES + place] = one[_SIDES_OF + place]
        elif gain > leaf[SECOND_GAIN]:
            leaf[SECOND_GAIN] = gain


@njit(cache=True)
def splits(leaf: Ints) -> bool:
    """Whether the best split is surely the best one, or as good as the next (Hoeffding's bound)."""
    bound = np.sqrt(_LOG / (2.0 * leaf[ASK_AT]))
    ahead = (leaf[GAIN] - leaf[SECOND_GAIN]) / GAIN_SCALE
    return bool(leaf[GAIN] > 0 and (ahead > bound or bound < TIE))


@njit(cache=True)
def split(nodes: Nodes, count: int, number: int, grace: int) -> None:
    """Give a leaf two leaves, which begin with the classes on both sides."""
    leaf = nodes[number]
    for side in range(2):
        child = nodes[count + side]
        child[:] = 0
        child[ATTRIBUTE] = NO_SPLIT
        child[ASK_AT] = grace
        for label in range(CLASSES):
            child[SEEN + label] = leaf[BEST_SIDES + side * CLASSES + label]
    leaf[ATTRIBUTE], leaf[CUT] = leaf[BEST_ATTRIBUTE], leaf[BEST_CUT]
    leaf[LOW], leaf[HIGH] = count, count + 1
    leaf[WAITS] = 0


@njit(cache=True)
def majority(leaf: Ints) -> int:
    """The class that a leaf saw most often; of equal ones the first."""
    best = 0
    for label in range(1, CLASSES):
        if leaf[SEEN + label] > leaf[SEEN + best]:
            best = label
    return best


@njit(cache=True)
def asks(leaf: Ints, grace: int) -> bool:
    """Whether a leaf asks now; one that saw a single class has no reason to, and tries later."""
    if leaf[WAITS] or leaf[TAKEN] != leaf[ASK_AT]:
        return False
    classes = 0
    for label in range(CLASSES):
        classes += leaf[SEEN + label] > 0
    if classes < 2:
        leaf[ASK_AT] += grace
        return False
    leaf[WAITS] = 1
    leaf[ANSWERS] = 0
    return True


@njit(cache=True)
def learn(
    nodes: Nodes,
    count: int,
    levels: Ints,
    labels: Ints,
    attributes: int,
    grace: int,
    delay: int,
) -> tuple[int, Ints, Ints, Ints, Ints, Ints]:
    """Predict and take instances in their order; `nodes` has room for two more for each leaf.

    Returns how many nodes there are now; for each instance its leaf (or `HELD`), its number among
    the instances of that leaf, from 1, and the predicted class; the leaves that asked; and the
    nodes that were split. An answer comes in a later call, so a leaf asks once in a call at most.
    """
    leaf_of = np.full(len(levels), HELD, dtype=np.int64)
    nth = np.zeros(len(levels), dtype=np.int64)
    predicted = np.zeros(len(levels), dtype=np.int64)
    asked = np.zeros(len(nodes), dtype=np.int64)
    was_split = np.zeros(len(nodes), dtype=np.int64)
    for place in range(len(levels)):
        number = 0
        while True:
            node = nodes[number]
            if node[ATTRIBUTE] != NO_SPLIT:
                level = (levels[place] >> (BITS * node[ATTRIBUTE])) & (LEVELS - 1)
                number = node[LOW] if level < node[CUT] else node[HIGH]
            elif not node[WAITS] or node[TAKEN] < node[ASK_AT] + delay:
                break
            elif node[ANSWERS] < attributes:
                number = HELD
                break
            elif splits(node):
                split(nodes, count, number, grace)
                was_split[number] = 1
                count += 2
            else:
                node[WAITS] = 0
                node[ASK_AT] = max(node[ASK_AT] + grace, node[TAKEN])
                if asks(node, grace):
                    asked[number] = 1
        if number == HELD:
            continue
        leaf = nodes[number]
        leaf_of[place] = number
        predicted[place] = majority(leaf)
        leaf[SEEN + labels[place]] += 1
        leaf[TAKEN] += 1
        nth[place] = leaf[TAKEN]
        if asks(leaf, grace):
            asked[number] = 1
    return count, leaf_of, nth, predicted, np.flatnonzero(asked), np.flatnonzero(was_split)


def compile_loops() -> None:
    """Compile here, once, so that all tasks find it in numba's cache."""
    none = np.zeros(0, dtype=np.int64)
    nodes = np.concatenate([new_tree(1), np.zeros((2, len(NODE)), dtype=np.int64)])
    hear(nodes, np.zeros((0, len(ANSWERED)), dtype=np.int64))
    learn(nodes, 1, none, none, 1, 1, 0)
