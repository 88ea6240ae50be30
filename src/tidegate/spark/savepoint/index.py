"""The index of a savepoint: what it is of, and each of its files with its size and its checksum.

It is written last, so a savepoint without it is not complete. It holds the description of the
pipeline as well: a directory without a `pipeline.json` is taken for no checkpoint by anybody.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.batch.checkpoint import INDEX, require_format
from tidegate.spark.state.files import Durable, Missing

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Copied:
    """A file of a savepoint."""

    path: str
    """Relative to the savepoint, and to any checkpoint that is made of it."""
    size_bytes: int
    checksum: int
    """CRC-32 of its content."""


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A complete savepoint."""

    url: str
    made_s: float
    """When it was made, in seconds since the epoch."""
    batches: Mapping[str, int]
    """For each segment the last committed batch that it has; -1: none."""
    description: Mapping[str, Any]
    """The description of the pipeline, as its checkpoint had it."""
    files: tuple[Copied, ...]

    @property
    def pipeline(self) -> str:
        """The name of the pipeline."""
        return str(self.description["pipeline"])

    @property
    def size_bytes(self) -> int:
        """All its files together."""
        return sum(file.size_bytes for file in self.files)

    def write(self) -> None:
        """Write the index, which makes the savepoint complete."""
        document = {
            "format": FORMAT,
            "made_s": self.made_s,
            "batches": dict(self.batches),
            "description": dict(self.description),
            "files": [[file.path, file.size_bytes, file.checksum] for file in self.files],
        }
        content = json.dumps(document, separators=(",", ":")).encode()
        if not Durable(self.url).create(INDEX, content):
            raise AskedWrongly(
                f"{self.url} has meanwhile become another savepoint; give another directory"
            )


def read_index(url: str) -> Savepoint:
    """A savepoint by its URL or path; an error says why it is none."""
    root = Durable(url)
    try:
        document = root.read_json(INDEX)
    except Missing:
        raise AskedWrongly(
            f"{url} is no complete savepoint: it has no {INDEX}; give a directory that `tidegate "
            "savepoint` has made"
        ) from None
    if document.get("format") != FORMAT:
        raise TidegateError(
            f"the savepoint {url} has format {document.get('format')}, and this release of "
            f"Tidegate reads {FORMAT}; use the release that made it, or a later one"
        )
    try:
        found = Savepoint(
            url,
            document["made_s"],
            document["batches"],
            document["description"],
            tuple(Copied(*file) for file in document["files"]),
        )
    except (KeyError, TypeError):
        raise TidegateError(
            f"the index {root.path(INDEX)} of the savepoint is damaged; restore it from a copy"
        ) from None
    require_format(dict(found.description), url)
    return found
