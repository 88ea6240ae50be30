"""Counts the records of a topic per key, until it has as many as the file ROOT/wanted says.

    python kafka_chaos_driver.py ROOT SERVERS TOPIC NAME

The sink writes one file per batch id, so that a replay replaces its first try.
"""

import os
import sys
from pathlib import Path

import tidegate as tg
from tests.helpers.chaos_driver import SHARDS, counted, write_batch


def main(root: Path, servers: str, topic: str, name: str) -> None:
    spark = tg.session("local[2]", "kafka chaos", kafka=True)
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .selectExpr("CAST(key AS STRING) AS k", "timestamp")
    )
    flow = (
        tg.pipeline("kafka-chaos", records, arrival="timestamp")
        .keyed("sums", tg.aggregate(n=tg.count()), key="k", shards=SHARDS)
        .to(write_batch(root / "out"))
    )
    checkpoint = str(root / "ck")
    run = flow.start(checkpoint, tasks=2)
    (root / f"started-{name}").write_text(str(os.getpid()))
    while counted(checkpoint) < int((root / "wanted").read_text()):
        if run.awaitTermination(0.1):
            break
    run.stop()
    (root / "finished").write_text("yes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
