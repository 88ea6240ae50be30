"""The maximal frequent patterns of a window by brute force, and the comparison with a run.

Nothing here is shared with the operators: itemsets are tuples of words, and maximal is what the
paper says it is, with no regard to messages.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

Pattern = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ExpectedPatterns:
    """What the records should be when all rows and messages have been processed."""

    counts: Mapping[Pattern, int]
    """How often each itemset occurs in the window; those that do not are not there."""
    maximal: frozenset[Pattern]
    above: Mapping[Pattern, int]
    """How many frequent itemsets with one word more contain it; 0 for those that are not there."""


def by_brute_force(tweets: Iterable[Pattern], threshold: int, largest: int) -> ExpectedPatterns:
    """Count every itemset of every tweet, and strike out what a frequent one contains."""
    counts: Counter[Pattern] = Counter()
    for words in tweets:
        for size in range(1, largest + 1):
            counts.update(combinations(sorted(set(words)), size))
    frequent = {itemset for itemset, count in counts.items() if count >= threshold}
    above: Counter[Pattern] = Counter()
    contained: set[Pattern] = set()
    for itemset in frequent:
        for size in range(1, len(itemset)):
            smaller = list(combinations(itemset, size))
            contained.update(smaller)
            if size == len(itemset) - 1:
                above.update(smaller)
    return ExpectedPatterns(counts, frozenset(frequent - contained), above)


@dataclass(frozen=True, slots=True)
class StateRow:
    """What a run has for one itemset when it is over."""

    count: int
    above: int
    maximal: bool


@dataclass(frozen=True, slots=True)
class Change:
    """One change that the reporter wrote."""

    at_us: int
    pattern: Pattern
    maximal: bool


def faults(
    expected: ExpectedPatterns, state: Mapping[Pattern, StateRow], changes: Iterable[Change]
) -> list[str]:
    """What is wrong with the answers of a run, in a few words for each kind of fault."""
    found = []
    counts = {pattern: row.count for pattern, row in state.items()}
    if (wrong := _differing(counts, expected.counts)) != 0:
        found.append(f"{wrong} itemsets have a wrong count")
    above = {pattern: row.above for pattern, row in state.items() if row.above}
    if (wrong := _differing(above, expected.above)) != 0:
        found.append(f"{wrong} itemsets have not heard of all larger ones")
    maximal = {pattern for pattern, row in state.items() if row.maximal}
    if wrong := len(maximal ^ expected.maximal):
        found.append(f"{wrong} itemsets are wrongly maximal or not")
    result, twice = replayed(changes)
    if wrong := len(result ^ expected.maximal):
        found.append(f"the reported changes lead to a result with {wrong} wrong patterns")
    if twice:
        found.append(f"{twice} changes were reported of what was so already")
    return found


def replayed(changes: Iterable[Change]) -> tuple[set[Pattern], int]:
    """The result that the changes lead to, in the order of their times, and how many are idle."""
    result: set[Pattern] = set()
    idle = 0
    for change in sorted(changes, key=lambda one: one.at_us):
        idle += (change.pattern in result) == change.maximal
        (result.add if change.maximal else result.discard)(change.pattern)
    return result, idle


def _differing(found: Mapping[Pattern, int], expected: Mapping[Pattern, int]) -> int:
    """How many itemsets have another number than expected, 0 if there is none."""
    both = found.keys() | expected.keys()
    return sum(found.get(one, 0) != expected.get(one, 0) for one in both)
