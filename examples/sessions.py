"""Sessions of event time: a user's clicks with less than half a second between them.

    python examples/sessions.py

A session is emitted once, when the watermark has passed its end and no click can join it.
"""

import tempfile

import tidegate as tg


def main(spark=None, seconds: float = 10) -> dict[str, int]:
    spark = spark or tg.session("local[4]")
    clicks = tg.arrivals(spark, "sine:300+-250/4", keys="uniform:60", seconds=seconds)
    closed: dict[int, list[dict]] = {}

    def show(frame, batch_id: int) -> None:
        closed[batch_id] = frame.toArrow().to_pylist()  # a replay replaces the first attempt
        longest = max(closed[batch_id], key=lambda row: row["clicks"], default=None)
        print(f"batch {batch_id}: {len(closed[batch_id])} sessions closed, longest {longest}")

    with tempfile.TemporaryDirectory() as checkpoint:
        flow = (
            tg.pipeline("visits", clicks, arrival="timestamp")
            .keyed(
                "sessions",
                tg.sessions(tg.aggregate(clicks=tg.count()), gap="500 ms", event_time="timestamp"),
                key="key",
            )
            .to(show)
        )
        run = flow.start(checkpoint, tasks=2)
        rows = 0
        while rows < 300 * seconds * 0.9:
            run.awaitTermination(0.2)
            rows = sum(r.rows_in for result in run.results() for r in result.of("sessions"))
        run.stop()
        rows = sum(r.rows_in for result in run.results() for r in result.of("sessions"))
        still_open = tg.read_state(checkpoint, "sessions")
    done = [row for rows in closed.values() for row in rows]
    clicks_seen = sum(row["clicks"] for row in done) + sum(still_open["clicks"].to_pylist())
    print(
        f"{len(done)} sessions closed, {still_open.num_rows} open; {clicks_seen:,} clicks in them"
    )
    return {"rows": rows, "clicks": clicks_seen, "closed": len(done)}


if __name__ == "__main__":
    main()
