"""The answers by plain loops over the lines, one after the other, with Python's own text functions.

Nothing here is shared with the operators. Windows are sums of slots, as in Intel's benchmark; the
operators fold each row into all windows that it lies in.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from tidegate.apps.storm_benchmark.topology import TimedLine

WindowEnd = tuple[str, int]
"""A word or a page, and the second at which a window ends."""


def matching(lines: Iterable[TimedLine], pattern: str) -> dict[str, int]:
    """How many lines have the pattern; nothing if there is none."""
    found = sum(re.search(pattern, line) is not None for _, line in lines)
    return {pattern: found} if found else {}


def rolling_words(lines: Iterable[TimedLine], window_s: int, every_s: int) -> dict[WindowEnd, int]:
    """How often each word occurs in each window."""
    slots: Counter[tuple[int, str]] = Counter()
    for at_us, line in lines:
        slot = at_us // 1_000_000 // every_s
        slots.update((slot, word) for word in line.split(" "))
    found: Counter[WindowEnd] = Counter()
    for (slot, word), count in slots.items():
        for end_s in ends_s(slot, window_s, every_s):
            found[word, end_s] += count
    return found


def rolling_visitors(
    lines: Iterable[TimedLine], window_s: int, every_s: int
) -> dict[WindowEnd, int]:
    """How many different users see each page in each window."""
    slots: defaultdict[tuple[int, str], set[str]] = defaultdict(set)
    for at_us, line in lines:
        url, _, _, user = line.split("\t")
        slots[at_us // 1_000_000 // every_s, url].add(user)
    found: defaultdict[WindowEnd, set[str]] = defaultdict(set)
    for (slot, url), users in slots.items():
        for end_s in ends_s(slot, window_s, every_s):
            found[url, end_s] |= users
    return {window: len(users) for window, users in found.items()}


def ends_s(slot: int, window_s: int, every_s: int) -> range:
    """The ends of all windows that have this slot."""
    first = (slot + 1) * every_s
    return range(first, first + window_s, every_s)


def page_views(lines: Iterable[TimedLine]) -> dict[str, int]:
    """How often each page was viewed, found or not."""
    return Counter(line.split("\t")[0] for _, line in lines)


def clean_views(lines: Iterable[TimedLine]) -> dict[int, tuple[str, int]]:
    """Page and user of each line with status 200, by the number of the line."""
    found = {}
    for number, (_, line) in enumerate(lines):
        url, status, _, user = line.split("\t")
        if status == "200":
            found[number] = (url, int(user))
    return found
