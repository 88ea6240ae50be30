"""Results of single runs, kept in a file as they come, so that a contest can be run in pieces.

A full contest takes hours. Whoever starts it again with the same options goes on where it ended:
what is in the file is not run again. A line that was cut off by a crash is left out.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One run: whatever is the same is not run twice."""

    body: str
    query: str
    load: str
    policy: str
    seconds: float
    minute_s: float
    seed: int

    @property
    def words(self) -> str:
        """What it is called while it runs."""
        return f"{self.query}, {self.load}: {self.policy}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came out of one run."""

    asked: Asked
    within: float
    """The share of the judged seconds within the target."""
    core_seconds: float
    changes: int
    p95_ms: float | None
    oracle_core_seconds: float
    """The least that would have held the target, with the costs of this run."""
    oracle_within: float
    verified: bool | None
    """Whether the answers were right; None where there are none."""
    took_s: float
    """How long the run took, with its verification."""


def read(file: Path) -> dict[Asked, Result]:
    """What is kept; of a run that is there twice, the last one."""
    if not file.is_file():
        return {}
    found = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        result = _result(line)
        if result is not None:
            found[result.asked] = result
    return found


def keep(file: Path, result: Result) -> None:
    """Append one result."""
    file.parent.mkdir(parents=True, exist_ok=True)
    whole = not file.is_file() or file.read_bytes()[-1:] in (b"", b"\n")
    with file.open("a", encoding="utf-8") as lines:
        lines.write(("" if whole else "\n") + json.dumps(asdict(result), allow_nan=False) + "\n")


def left(asked: Iterable[Asked], kept: dict[Asked, Result]) -> list[Asked]:
    """The runs that are still to be done, in their order."""
    return [one for one in asked if one not in kept]


def _result(line: str) -> Result | None:
    """A line as a result; None for one that is cut off or of another form."""
    try:
        document = json.loads(line)
        asked = Asked(**document.pop("asked"))
        names = {field.name for field in fields(Result)} - {"asked"}
        if set(document) != names:
            return None
        return Result(asked=asked, **document)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
