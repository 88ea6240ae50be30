"""Where the rows that one task wrote into a topic are: by this name a channel hands them over.

The name begins like that of a channel's file, with the batch and the task, so that logs of both
kinds read alike. Behind the `@` are the topic, the partition, and the offsets of its records.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_FORM = re.compile(r"(?P<name>[^@]+)@(?P<topic>[^:]+):(?P<partition>\d+):(?P<offsets>[\d,-]+)")


@dataclass(frozen=True, slots=True)
class RecordsReference:
    """The records of one task."""

    name: str
    """What every record of the task carries, so that no other one is taken for it."""
    topic: str
    partition: int
    offsets: tuple[int, ...]

    def __str__(self) -> str:
        """The name of the records in a channel; consecutive offsets are written as a range."""
        return f"{self.name}@{self.topic}:{self.partition}:{_ranges(self.offsets)}"

    @classmethod
    def parsed(cls, text: str) -> "RecordsReference | None":
        """From its name; None if that is the name of a file."""
        found = _FORM.fullmatch(text)
        if found is None:
            return None
        offsets: list[int] = []
        for part in found["offsets"].split(","):
            first, _, last = part.partition("-")
            offsets.extend(range(int(first), int(last or first) + 1))
        return cls(found["name"], found["topic"], int(found["partition"]), tuple(offsets))


def _ranges(offsets: Sequence[int]) -> str:
    parts: list[list[int]] = []
    for offset in offsets:
        if parts and offset == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], offset]
        else:
            parts.append([offset])
    return ",".join("-".join(str(one) for one in part) for part in parts)
