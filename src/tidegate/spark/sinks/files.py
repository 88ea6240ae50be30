"""Writes a batch as files whose names tell the batch, so that a replay replaces them.

Spark writes the files of a try into a hidden directory of the try's own. When all of them are
there, each is moved to its name in the sink's directory: the sink, the query, the batch, the number
of the task. A replayed batch has the same names, so it replaces what an earlier try has moved, and
what it has no name for is removed. Readers need no log: what they list is the output, once.
"""

import re
import uuid
from dataclasses import dataclass

from pyspark.sql import DataFrame

from tidegate.spark.sinks.attempt import Attempt
from tidegate.spark.sinks.hadoop import HadoopDirectory

HIDDEN = ".tidegate"
"""Where tries write. Spark, Hadoop and pyarrow do not look into directories of such names."""
SPARKS_LOG = "_spark_metadata"
"""Where Spark's own file sink lists its files. Where it exists, Spark reads no others."""
_PART = re.compile(r"part-(?P<task>\d+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?P<rest>.*)")
"""Spark's names of files: the task, the id of the job, a counter and the format."""


@dataclass(frozen=True, slots=True)
class FileSink:
    """A format of files, and where they go."""

    format: str
    path: str
    options: tuple[tuple[str, str], ...] = ()
    partition_by: tuple[str, ...] = ()

    def write(self, frame: DataFrame, attempt: Attempt) -> None:
        """Write a batch; afterwards the directory has its rows once, whatever was tried before."""
        directory = HadoopDirectory.of(frame.sparkSession, self.path)
        aside = f"{HIDDEN}/{_prefix(attempt)}{uuid.uuid4().hex[:8]}"
        writer = frame.write.format(self.format).options(**dict(self.options))
        writer.partitionBy(*self.partition_by).save(f"{directory.location}/{aside}")
        written = {name: published_name(name, attempt) for name in directory.all_below(aside)}
        names = {name: new for name, new in written.items() if new is not None}
        attempt.check()  # the job may have taken long, and another driver may have gone on
        if attempt.again:
            self._make_way(directory, attempt, set(names.values()))
        for name, new in names.items():
            directory.move(f"{aside}/{name}", new)
        directory.remove(aside)
        if attempt.again:
            for left in directory.matching(f"{HIDDEN}/{_prefix(attempt)}*"):
                directory.remove(left)

    def _make_way(self, directory: HadoopDirectory, attempt: Attempt, names: set[str]) -> None:
        """Remove what an earlier try has moved, unless every file of it is about to be replaced.

        If the rows are divided into other files this time, a row must not be in a file of the
        earlier try and in one of this try, not even while they are moved.
        """
        folders = "*=*/" * len(self.partition_by)
        earlier = directory.matching(f"{folders}{_prefix(attempt)}*")
        if not names.issuperset(earlier):
            for name in earlier:
                directory.remove(name)


def published_name(name: str, attempt: Attempt) -> str | None:
    """The name of a file in the sink's directory; None for one that holds no rows of the batch."""
    folder, slash, file = name.rpartition("/")
    found = _PART.fullmatch(file)
    if found is None:
        return None
    return f"{folder}{slash}{_prefix(attempt)}{found['task']}{found['rest']}"


def _prefix(attempt: Attempt) -> str:
    return f"part-{attempt.sink}-{attempt.mark}-{attempt.batch_id:010d}-"
