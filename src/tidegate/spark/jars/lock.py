"""A lock file of jars: a line for each, with its Maven coordinates and its SHA-256.

Coordinates alone would trust whatever a repository, a mirror or a proxy answers. With the checksum
beside them, everybody runs the same bytes or nothing. `python -m tidegate.spark.jars.relock` makes
the lines.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from tidegate.errors import TidegateError

_WORD = r"[A-Za-z0-9][\w.-]*"
COORDINATES = re.compile(rf"({_WORD}):({_WORD}):({_WORD})")
"""GROUP:NAME:VERSION, as Maven and Spark write them."""
_LINE = re.compile(rf"{COORDINATES.pattern} sha256:([0-9a-f]{{64}})")


@dataclass(frozen=True, slots=True)
class Jar:
    """A jar of a Maven repository, and what it must contain."""

    group: str
    name: str
    version: str
    sha256: str

    @property
    def coordinates(self) -> str:
        """GROUP:NAME:VERSION, as Maven and Spark write them."""
        return f"{self.group}:{self.name}:{self.version}"

    @property
    def file(self) -> str:
        """Its path in a directory of jars."""
        return f"{self.group}/{self.name}/{self.version}/{self.name}-{self.version}.jar"

    def matches(self, path: Path) -> bool:
        """Whether this file is the jar, byte for byte."""
        return sha256_of(path) == self.sha256

    def __str__(self) -> str:
        """Its line in a lock file."""
        return f"{self.coordinates} sha256:{self.sha256}"


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_lock(path: Path) -> tuple[Jar, ...]:
    """The jars of a lock file; empty lines and comments (`#`) are skipped."""
    jars: dict[str, Jar] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise TidegateError(
                f"{path.name}, line {number}: '{text}' does not pin a jar; expected "
                "GROUP:NAME:VERSION sha256:CHECKSUM; make the file again with "
                "python -m tidegate.spark.jars.relock"
            )
        jar = Jar(*match.groups())
        if jar.file in jars:
            raise TidegateError(
                f"{path.name}, line {number}: {jar.coordinates} is there twice; remove one"
            )
        jars[jar.file] = jar
    return tuple(jars.values())
