"""Sums rows per key with everything on S3, until it has as many rows as the file ROOT/wanted says.

    python s3_driver.py ROOT CHECKPOINT NAME

The sink writes one file per batch id to ROOT/out, so that a replay replaces its first try.
"""

import os
import sys
from pathlib import Path

import tidegate as tg
from tests.helpers.chaos_driver import SHARDS, counted, write_batch


def main(root: Path, checkpoint: str, name: str) -> None:
    spark = tg.session("local[2]", "s3", s3=True)
    stream = (
        spark.readStream.schema("k string, v long")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(root / "in"))
    )
    flow = (
        tg.pipeline("s3", stream)
        .map(lambda table: table, name="same")
        .cut("between")
        .keyed("sums", tg.aggregate(n=tg.count(), total=tg.sum("v")), key="k", shards=SHARDS)
        .to(write_batch(root / "out"))
    )
    run = flow.start(checkpoint, target="20 seconds", cores=(1, 2))
    (root / f"started-{name}").write_text(str(os.getpid()))
    while counted(checkpoint) < int((root / "wanted").read_text()):
        if run.awaitTermination(1.0):
            break
    run.stop()
    (root / "finished").write_text("yes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
