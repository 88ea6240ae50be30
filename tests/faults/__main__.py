"""Searches many seeds on all cores, with progress: `python -m tests.faults --seeds 100000`."""

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.faults.search import defect_of, shrunk
from tests.faults.world import Course

_CHUNK = 50


def _search(first: int) -> list[int]:
    """The seeds of a chunk that show a defect."""
    seeds = range(first, first + _CHUNK)
    return [seed for seed in seeds if defect_of(Course.of(seed)) is not None]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000, help="how many seeds to try")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="show the course of this seed alone")
    given = parser.parse_args()
    if given.seed is not None:
        found = defect_of(Course.of(given.seed))
        print(found or f"seed {given.seed}: as a sequential run")
        return found is not None
    begun_s = time.monotonic()
    wrong: list[int] = []
    done = 0
    chunks = range(given.first, given.first + given.seeds, _CHUNK)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(_search, chunks):
            wrong += found
            done += _CHUNK
            took_s = time.monotonic() - begun_s
            left_s = took_s / done * (len(chunks) * _CHUNK - done)
            said = f"\r{done} seeds, {len(wrong)} with a defect, about {left_s:.0f} s left   "
            print(said, end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(f"{done} seeds in {time.monotonic() - begun_s:.0f} s, {len(wrong)} with a defect")
    if wrong:
        print(f"seeds: {', '.join(map(str, wrong[:20]))}")
        course = shrunk(Course.of(wrong[0]))
        print(f"the first one, made shorter: {course}\n{defect_of(course)}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
