"""Two segments and a loop: numbers go around until they are 1.

    python examples/loop.py

In each round an even number is halved, and an odd one is tripled plus one (Collatz). A number that
is not 1 yet goes back through a channel. A second segment keeps how many rounds each number took.
"""

import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import tidegate as tg


def step(table: pa.Table) -> pa.Table:
    """One round for all numbers in a table."""
    n = table["n"].to_numpy()
    following = np.where(n == 1, 1, np.where(n % 2 == 0, n // 2, 3 * n + 1))
    rounds = table["rounds"].to_numpy() + (n != 1)
    return pa.table({"start": table["start"], "n": following, "rounds": rounds})


def begin(table: pa.Table) -> pa.Table:
    """Row number i starts with the number i + 1."""
    start = table["seq"].to_numpy() + 1
    return pa.table({"start": start, "n": start, "rounds": np.zeros(len(start), dtype=np.int64)})


def expected_rounds(start: int) -> int:
    """The expected number of rounds, computed one step at a time."""
    rounds = 0
    while start != 1:
        start = start // 2 if start % 2 == 0 else 3 * start + 1
        rounds += 1
    return rounds


def main(spark=None, numbers: int = 12) -> dict[int, int]:
    spark = spark or tg.session("local[4]")
    source = tg.arrivals(spark, f"constant:{numbers}", seconds=1)
    flow = tg.pipeline("collatz", source).map(begin, "start long, n long, rounds long")
    back = flow.loop("again")
    stepped = flow.merge(back).map(step)
    stepped.map(lambda t: t.filter(pc.not_equal(t["n"], 1)), name="unfinished").feed(back)
    finished = stepped.map(lambda t: t.filter(pc.equal(t["n"], 1)), name="finished").cut("done")
    finished.keyed("rounds", tg.max("rounds", as_="rounds"), key="start")
    with tempfile.TemporaryDirectory() as checkpoint:
        run = flow.start(checkpoint, tasks=2)
        done = 0
        while done < numbers:
            run.awaitTermination(0.2)
            done = sum(r.rows_in for result in run.results("done") for r in result.of("rounds"))
        run.stop()
        state = tg.read_state(checkpoint, "rounds").sort_by("start").to_pylist()
    found = {row["start"]: row["rounds"] for row in state}
    for start, rounds in found.items():
        print(f"{start:4} reaches 1 after {rounds:3} rounds (expected {expected_rounds(start)})")
    return found


if __name__ == "__main__":
    main()
