"""Windows of event time one by one, for the references of the queries that have some."""

from collections.abc import Iterator


def sliding(at_us: int, size_us: int, every_us: int) -> Iterator[int]:
    """The starts of the windows that a time lies in."""
    start_us = at_us // every_us * every_us
    while start_us + size_us > at_us:
        yield start_us
        start_us -= every_us


def sessions_of(times_us: list[int], gap_us: int) -> Iterator[tuple[int, int, int]]:
    """The sessions of one key's events: start, end and how many events there are."""
    begin_us, last_us, count = None, 0, 0
    for at_us in sorted(times_us):
        if begin_us is not None and at_us - last_us >= gap_us:
            yield begin_us, last_us + gap_us, count
            begin_us, count = None, 0
        begin_us = at_us if begin_us is None else begin_us
        last_us, count = at_us, count + 1
    if begin_us is not None:
        yield begin_us, last_us + gap_us, count
