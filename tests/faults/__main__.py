"""Searches many seeds on all cores, with progress: `python -m tests.faults --seeds 100000`."""

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from rich.console import Console

from tests.faults.search import defect_of, shrunk
from tests.faults.world import Course
from tidegate.view.live.progress import ShownProgress

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
    # The processes are there before the thread that shows the progress: a fork copies its locks.
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        searched = pool.map(_search, chunks)
        with ShownProgress(Console(stderr=True), "faults") as shown:
            shown.progress.expect(len(chunks) * _CHUNK)
            for found in searched:
                wrong += found
                done += _CHUNK
                shown.progress.reached(done, f"{done} seeds, {len(wrong)} with a defect")
    print(f"{done} seeds in {time.monotonic() - begun_s:.0f} s, {len(wrong)} with a defect")
    if wrong:
        print(f"seeds: {', '.join(map(str, wrong[:20]))}")
        course = shrunk(Course.of(wrong[0]))
        print(f"the first one, made shorter: {course}\n{defect_of(course)}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
