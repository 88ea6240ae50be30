"""Pairs of rows of two sides with the same key and with times that are close to each other."""

import numpy as np

from tidegate.pipelines.functions.columns import Numbers

_MOST = 2**62


def pairs_within(
    left_key: Numbers,
    left_us: Numbers,
    right_key: Numbers,
    right_us: Numbers,
    before_us: int,
    after_us: int,
) -> tuple[Numbers, Numbers]:
    """Each left row with each right row of its key that lies from `before_us` earlier to `after_us`
    later; as the two rows' numbers, ordered by the left row's, then by the right row's time.

    The right rows are sorted once by key and time. Then the rows that match a left one stand
    together, and two binary searches find them.
    """
    empty = np.empty(0, dtype=np.int64)
    if not len(left_key) or not len(right_key):
        return empty, empty
    low, high = int(right_us.min()), int(right_us.max())
    width = high - low + 2
    if width * (max(int(left_key.max()), int(right_key.max())) + 1) < _MOST:
        place = right_us - low
        first = (left_us - before_us - low).clip(0, width - 1)
        last = (left_us + after_us + 1 - low).clip(0, width - 1)
    else:  # times so far apart that a key and a time do not fit into one number: rank them
        times = np.unique(right_us)
        width = len(times) + 1
        place = np.searchsorted(times, right_us)
        first = np.searchsorted(times, left_us - before_us)
        last = np.searchsorted(times, left_us + after_us, side="right")
    code = right_key * width + place
    order = np.argsort(code, kind="stable")
    ordered = code[order]
    begin = np.searchsorted(ordered, left_key * width + first)
    counts = np.searchsorted(ordered, left_key * width + last) - begin
    left = np.repeat(np.arange(len(left_key)), counts)
    within = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
    return left, order[begin[left] + within]


def numbers_after(known_key: Numbers, known_number: Numbers, key: Numbers, keys: int) -> Numbers:
    """For each new row a number that no other row of its key has: they go on from the known ones.

    `keys` is larger than any key.
    """
    last = np.full(keys, -1, dtype=np.int64)
    np.maximum.at(last, known_key, known_number)
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    begins = np.ones(len(key), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    start = np.maximum.accumulate(np.where(begins, np.arange(len(key)), 0))
    number = np.empty(len(key), dtype=np.int64)
    number[order] = np.arange(len(key)) - start
    return number + last[key] + 1
