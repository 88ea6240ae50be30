"""Notes which rows were kept, so that the answers can be checked against those rows.

Which rows an overload leaves is known only when it is over. So the task that has just shed its
rows writes down those that it kept. A task that runs twice keeps the same rows, and a row's number
tells that it is the same one.
"""

import uuid
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from tidegate.pipelines.shedding import WEIGHT

_NOTED = pa.schema(
    {
        "seq": pa.int64(),
        "key": pa.int64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        WEIGHT: pa.float64(),
    }
)


@dataclass(frozen=True, slots=True)
class NotedRows:
    """A directory with the kept rows, one file for each call of a task on this machine."""

    directory: Path

    def note(self, rows: pa.Table) -> None:
        """Write down rows that were kept."""
        self.directory.mkdir(parents=True, exist_ok=True)
        noted = rows.select(_NOTED.names).cast(_NOTED)  # while nothing is shed, no weight is null
        place = self.directory / f"{uuid.uuid4().hex}.arrow"
        begun = place.with_suffix(".begun")  # a task may be killed in the middle of it
        with pa.OSFile(str(begun), "wb") as file, pa.ipc.new_file(file, noted.schema) as writer:
            writer.write_table(noted)
        begun.rename(place)

    def rows(self) -> pa.Table | None:
        """All kept rows by their number, each once; None if there are none."""
        files = sorted(self.directory.glob("*.arrow"))
        parts = [pa.ipc.open_file(str(file)).read_all() for file in files]
        if not parts:
            return None
        table = pa.concat_tables(parts)
        _, first = np.unique(table["seq"].to_numpy(), return_index=True)
        return table.take(pa.array(first))
