"""A running count per key that changes its parallelism while it runs.

    python examples/running_count.py

Rows arrive at 2,000 per second over 500 keys. Half way, the keyed operator and its state go from 2
tasks to 6, between two micro-batches. At the end the counts are compared with the rows.
"""

import tempfile

import pyarrow.compute as pc

import tidegate as tg


def main(spark=None, seconds: float = 10) -> dict[str, int]:
    spark = spark or tg.session("local[4]")
    clicks = tg.arrivals(spark, "constant:2000", keys="zipf:500,1.1", seconds=seconds)
    with tempfile.TemporaryDirectory() as checkpoint:
        flow = tg.pipeline("clicks", clicks, arrival="timestamp").keyed(
            "per_key", tg.count(), key="key"
        )
        run = flow.start(checkpoint, tasks=2)
        batches, rows = 0, 0
        while rows < 2000 * seconds:
            run.awaitTermination(0.2)
            results = run.results()
            for result in results[batches:]:
                tasks = result.plan.operators["per_key"].tasks
                count = sum(report.rows_in for report in result.of("per_key"))
                rows += count
                print(
                    f"batch {result.plan.batch_id:3}: {count:6,} rows on {tasks} tasks "
                    f"in {result.duration_s * 1000:5.0f} ms"
                )
            batches = len(results)
            if rows > 1000 * seconds:
                run.rescale("per_key", tasks=6)
        run.stop()
        state = tg.read_state(checkpoint, "per_key")
    total = pc.sum(state["count"]).as_py()
    print(f"{rows:,} rows arrived, {total:,} are counted in {state.num_rows} keys")
    return {"rows": rows, "counted": total}


if __name__ == "__main__":
    main()
