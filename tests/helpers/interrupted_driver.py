"""A program that waits for its pipeline until Ctrl-C ends it. Arguments: a directory."""

import sys
from pathlib import Path

import tidegate as tg


def sink(frame, batch_id: int) -> None:
    frame.count()
    print(f"batch {batch_id}", flush=True)


def main() -> None:
    place = Path(sys.argv[1])
    spark = tg.session("local[2]")
    rows = tg.arrivals(spark, "constant:50", keys="uniform:5")
    first = tg.pipeline("clicks", rows, arrival="timestamp").map(lambda t: t, name="first")
    first.cut("handover").keyed("n", tg.count(), key="key").to(sink)
    run = first.start(str(place / "ck"), tasks=1)
    run.awaitTermination()
    print("not reached: Ctrl-C ends the program", flush=True)


if __name__ == "__main__":
    main()
