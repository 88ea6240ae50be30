"""The descriptions of a checkpoint: what it belongs to, and what it belonged to before each change.

A description is never replaced. A change is one more file, which is created exclusively, and the
newest description holds. So of two drivers that change the same one a single one succeeds, and a
driver that was paused can neither remove nor undo what its successor has written. That needs no
more of a filesystem than the claims on a checkpoint do.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.spark.state.files import Durable, Missing

DESCRIPTION = "pipeline.json"
"""The first description of a checkpoint."""


@dataclass(frozen=True, slots=True)
class Description:
    """What a checkpoint says about its pipeline."""

    number: int
    """How many changes were made before it."""
    document: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Descriptions:
    """The descriptions in the directory of a checkpoint."""

    directory: Durable

    def newest(self) -> Description | None:
        """The one that holds; None if the checkpoint is new.

        A listing may lag behind, so the files after the newest listed one are asked for by name.
        """
        number = max(filter(None, map(_number, self.directory.names())), default=0)
        while self.directory.exists(_name(number + 1)):
            number += 1
        try:
            return Description(number, self.directory.read_json(_name(number)))
        except Missing:
            return None

    def follow(self, before: Description | None, document: Mapping[str, Any]) -> bool:
        """Write the description after this one; False if another driver was quicker."""
        number = 0 if before is None else before.number + 1
        content = json.dumps(document, separators=(",", ":")).encode()
        return self.directory.create(_name(number), content)


def _name(number: int) -> str:
    return f"pipeline.{number}.json" if number else DESCRIPTION


def _number(name: str) -> int | None:
    """The number of a changed description; None for every other file."""
    number = name.removeprefix("pipeline.").removesuffix(".json")
    return int(number) if name == f"pipeline.{number}.json" and number.isdigit() else None
