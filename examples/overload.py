"""An overload: more rows than four cores can process, and no more cores to be had.

    python examples/overload.py

The pipeline may have four cores, and it may drop rows (`shed=True`): those of free users first, of
whom a tenth is always kept. In the middle third of a minute the load is twice what fits. At the end
it prints how many rows of each kind were dropped. The records are in out/overload.ckpt, for
`tidegate explain` and `tidegate page`.
"""

import time
from pathlib import Path

import pyarrow as pa

import tidegate as tg

WAIT_S = 0.008
"""What a row costs: a call to a slow service. Four tasks do 500 rows a second."""
TIER = "IF(key % 4 = 0, 'gold', 'free') AS tier"


def enrich(rows: pa.Table) -> pa.Table:
    """Stands for the slow service."""
    time.sleep(rows.num_rows * WAIT_S)
    return rows


def main(
    spark=None, seconds: float = 60, checkpoint: str = "out/overload.ckpt"
) -> dict[str, tuple[int, int]]:
    spark = spark or tg.session("local[6]")
    Path(checkpoint).parent.mkdir(parents=True, exist_ok=True)
    load = f"step:200@0,1000@{seconds / 3:g},200@{seconds * 2 / 3:g}"
    rows = tg.arrivals(spark, load, keys="zipf:500,0.8", seconds=seconds)
    flow = (
        tg.pipeline("overload", rows.selectExpr("*", TIER), arrival="timestamp")
        .shed(
            by="tier",
            classes={"gold": tg.ShedClass(priority=1), "free": tg.ShedClass(floor=0.1)},
        )
        .map(enrich, tasks=(1, 4))
        .keyed("per_key", tg.count(), key="key")
    )
    run = flow.start(checkpoint, target="2 seconds", cores=(1, 4), shed=True)
    run.awaitTermination(seconds + 5)
    run.stop()
    (clicks,) = run.counts().values()
    counts = {one.name: (one.offered, one.kept) for one in clicks.classes if one.offered}
    for name, (offered, kept) in counts.items():
        print(f"{name}: {offered:,} rows arrived, {kept:,} were processed")
    return counts


if __name__ == "__main__":
    main()
