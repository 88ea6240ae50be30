"""Prints the lines of a lock file: `python -m tidegate.spark.jars.relock COORDINATES...`.

    python -m tidegate.spark.jars.relock --with-dependencies GROUP:NAME:VERSION ... > NAME.lock

The checksums are those of what the repository sends now, so compare a new file with the old one.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.jars.ivy import download
from tidegate.spark.jars.lock import COORDINATES, Jar, sha256_of


def relock(coordinates: list[str], with_dependencies: bool) -> list[Jar]:
    """The jars of these coordinates, or those that they need as well, with their checksums."""
    for one in coordinates:
        if not COORDINATES.fullmatch(one):
            raise AskedWrongly(f"'{one}' is not a jar; give GROUP:NAME:VERSION")
    with tempfile.TemporaryDirectory(prefix="tidegate-relock-") as scratch:
        download(coordinates, Path(scratch), with_dependencies=with_dependencies)
        found = sorted(Path(scratch).glob("*/*/*/*.jar"))
        return [_jar(path) for path in found]


def _jar(path: Path) -> Jar:
    """What a downloaded jar is, by the directories that it is in."""
    group, name, version = path.parts[-4:-1]
    return Jar(group, name, version, sha256_of(path))


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(prog="python -m tidegate.spark.jars.relock")
    parser.add_argument("--with-dependencies", action="store_true")
    parser.add_argument("coordinates", nargs="+", metavar="GROUP:NAME:VERSION")
    asked = parser.parse_args()
    try:
        jars = relock(asked.coordinates, asked.with_dependencies)
    except TidegateError as error:
        sys.exit(str(error))
    print("\n".join(str(jar) for jar in jars))


if __name__ == "__main__":
    main()
