"""A sink that collects what an application emits, so that it can be verified.

Each batch is one file under its own id. A batch that is replayed writes the same file again, so no
row is there twice.
"""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Collected:
    """Writes the rows of every batch into a directory: give it to `.to(...)`."""

    directory: Path

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Write the rows of one batch."""
        self.directory.mkdir(parents=True, exist_ok=True)
        table = rows.toArrow()
        place = self.directory / f"{batch_id:010d}.arrow"
        with pa.OSFile(str(place), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)

    def rows(self) -> pa.Table | None:
        """All rows, in the order of the batches; None if there was no batch."""
        files = sorted(self.directory.glob("*.arrow"))
        parts = [pa.ipc.open_file(str(file)).read_all() for file in files]
        return pa.concat_tables(parts) if parts else None
