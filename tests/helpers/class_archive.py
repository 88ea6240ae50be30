"""An archive of Spark's classes: with it a JVM of the tests starts in half the CPU time.

    python -m tests.helpers.class_archive

A JVM otherwise reads, checks and prepares ten thousand classes anew, and the tests of drivers and
executors start some forty JVMs. Java (JEP 350) refuses an archive that was made by another Java or
from other jars, and then starts as it does without one. An archive is a help and never needed:
where none can be made, the tests run without it.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
from pyspark import SparkContext

import tidegate as tg
from tests.helpers.feed import Feed

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"


def archive_options() -> str:
    """What a JVM is given to use the archive, and to say nothing if it does not fit."""
    if not ARCHIVE.is_file():
        return ""
    return f"-XX:SharedArchiveFile={ARCHIVE} -Xlog:disable -Xlog:all=error:stderr"


def make_archive() -> None:
    """Make the archive, or make it anew."""
    with tempfile.TemporaryDirectory(prefix=".classes-", dir=ARCHIVE.parent) as directory:
        made = Path(directory) / ARCHIVE.name
        subprocess.run([sys.executable, "-m", __spec__.name, str(made)], check=False)
        if made.is_file():
            made.replace(ARCHIVE)


def use_classes(archive: Path) -> None:
    """Run a pipeline in a JVM that writes the classes it has loaded to `archive` when it ends."""
    light = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ArchiveClassesAtExit={archive}"
    spark = tg.session("local[2]", "classes", **{"spark.driver.extraJavaOptions": light})
    with tempfile.TemporaryDirectory(prefix="tidegate-classes-") as directory:
        feed = Feed(Path(directory) / "in", "k long")
        feed.add(pa.table({"k": [1, 2, 2]}))
        flow = tg.pipeline("classes", feed.stream(spark)).map(lambda rows: rows)
        run = flow.keyed("n", tg.count(), key="k").start(f"{directory}/checkpoint", tasks=2)
        run.processAllAvailable()
        run.stop()
    gateway = SparkContext._gateway
    spark.stop()
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        use_classes(Path(sys.argv[1]))
    else:
        make_archive()
