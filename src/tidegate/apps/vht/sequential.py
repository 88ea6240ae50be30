"""The same tree learned sequentially in plain Python, to verify a pipeline with.

Nothing is sent here: a leaf has its statistics beside it and answers its own question. It shares
the definition of the algorithm with the pipeline, and no code but the way attributes are packed.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tidegate.apps.vht.messages import GAIN_SCALE
from tidegate.apps.vht.options import DELTA, TIE, VhtOptions
from tidegate.apps.vht.packed import BITS, CLASSES, LEVELS

Path = tuple[bool, ...]
"""The way from the root to a node; True is the high side."""


@dataclass(slots=True)
class BestSplit:
    """The best split of one attribute."""

    gain: int
    attribute: int
    cut: int
    sides: tuple[list[int], list[int]]


@dataclass(slots=True)
class SequentialNode:
    """A leaf, or a node that was split."""

    seen: list[int]
    ask_at: int
    counts: list[list[list[int]]]
    """How often each level of each attribute came with each class."""
    taken: int = 0
    best: tuple[BestSplit, int] | None = None
    """The best split when the leaf asked, and the gain of the next best attribute."""
    attribute: int = -1
    cut: int = 0
    children: "tuple[SequentialNode, SequentialNode] | None" = None


@dataclass(slots=True)
class SequentialTree:
    """A Hoeffding tree whose splits count `delay` instances after a leaf has asked."""

    options: VhtOptions
    root: SequentialNode = field(init=False)

    def __post_init__(self) -> None:
        self.root = self._leaf([0] * CLASSES)

    def predicted(self, levels: int, label: int) -> int:
        """Predict the class of an instance, then learn from it."""
        leaf = self._leaf_of(levels)
        answer = max(range(CLASSES), key=lambda one: (leaf.seen[one], -one))
        leaf.seen[label] += 1
        leaf.taken += 1
        for attribute, levels_seen in enumerate(leaf.counts):
            levels_seen[levels >> (BITS * attribute) & (LEVELS - 1)][label] += 1
        self._ask(leaf)
        return answer

    def nodes(self) -> Iterator[tuple[Path, SequentialNode]]:
        """All nodes with the way to each."""
        waiting: list[tuple[Path, SequentialNode]] = [((), self.root)]
        while waiting:
            path, node = waiting.pop()
            yield path, node
            for high, child in enumerate(node.children or ()):
                waiting.append(((*path, bool(high)), child))

    def _leaf(self, seen: Sequence[int]) -> SequentialNode:
        counts = [[[0] * CLASSES for _ in range(LEVELS)] for _ in range(self.options.attributes)]
        return SequentialNode(list(seen), self.options.grace, counts)

    def _leaf_of(self, levels: int) -> SequentialNode:
        node = self.root
        while True:
            if node.children is not None:
                level = levels >> (BITS * node.attribute) & (LEVELS - 1)
                node = node.children[level >= node.cut]
            elif node.best is None or node.taken < node.ask_at + self.options.delay:
                return node
            else:
                self._decide(node, *node.best)

    def _decide(self, leaf: SequentialNode, best: BestSplit, second: int) -> None:
        """Split if the best attribute is surely the best one, or as good as the next."""
        bound = math.sqrt(math.log(1.0 / DELTA) / (2.0 * leaf.ask_at))
        leaf.best = None
        if best.gain > 0 and ((best.gain - second) / GAIN_SCALE > bound or bound < TIE):
            leaf.attribute, leaf.cut = best.attribute, best.cut
            leaf.children = (self._leaf(best.sides[0]), self._leaf(best.sides[1]))
            return
        leaf.ask_at = max(leaf.ask_at + self.options.grace, leaf.taken)
        self._ask(leaf)

    def _ask(self, leaf: SequentialNode) -> None:
        if leaf.best is not None or leaf.taken != leaf.ask_at:
            return
        if sum(count > 0 for count in leaf.seen) < 2:
            leaf.ask_at += self.options.grace
            return
        answers = [best_split(attribute, counts) for attribute, counts in enumerate(leaf.counts)]
        answers.sort(key=lambda one: (-one.gain, one.attribute))
        leaf.best = (answers[0], answers[1].gain if len(answers) > 1 else 0)


def best_split(attribute: int, counts: Sequence[Sequence[int]]) -> BestSplit:
    """The cut with the highest gain of information; of equal ones the lowest."""
    best: BestSplit | None = None
    for cut in range(1, LEVELS):
        sides = tuple(
            [sum(level[label] for level in part) for label in range(CLASSES)]
            for part in (counts[:cut], counts[cut:])
        )
        together = [low + high for low, high in zip(*sides, strict=True)]
        gain = _entropy(together) - sum(
            sum(side) / sum(together) * _entropy(side) for side in sides
        )
        scaled = round(gain * GAIN_SCALE)
        if best is None or scaled > best.gain:
            best = BestSplit(scaled, attribute, cut, (sides[0], sides[1]))
    assert best is not None
    return best


def _entropy(counts: Sequence[int]) -> float:
    total = sum(counts)
    return -sum(one / total * math.log2(one / total) for one in counts if one)
