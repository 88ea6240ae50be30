"""The jars of a lock file on this machine: fetched once, checked before every use.

They lie in ~/.cache/tidegate/jars (or XDG_CACHE_HOME), or where TIDEGATE_JARS says. Downloads go to
a directory of their own and are renamed into the cache one by one, so that two processes may fetch
the same jars at the same time, and a half of a jar is never seen.
"""

import logging
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tidegate.errors import TidegateError
from tidegate.spark.jars.ivy import SETTINGS_VARIABLE, JarsUnavailable, download
from tidegate.spark.jars.lock import Jar, read_lock, sha256_of

CACHE_VARIABLE = "TIDEGATE_JARS"

log = logging.getLogger("tidegate")


def cache_directory() -> Path:
    """Where jars are kept."""
    if given := os.environ.get(CACHE_VARIABLE):
        return Path(given).expanduser().absolute()
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(root).expanduser().absolute() / "tidegate" / "jars"


def jars_of(
    lock: Path, what: str, *, fetch: Callable[[Sequence[str], Path], None] = download
) -> list[Path]:
    """The jars of a lock file, those that are missing fetched first; `what` names them in errors.

    Raises `JarsUnavailable` if some cannot be had, and `TidegateError` if a repository sends other
    bytes than the pinned ones.
    """
    jars = read_lock(lock)
    directory = cache_directory()
    missing = [jar for jar in jars if not _is_there(jar, directory)]
    if missing:
        _tell(f"{what}: fetching {len(missing)} jars to {directory}, once (about a minute)")
        try:
            _fetch(missing, directory, what, fetch)
        except OSError as error:
            raise TidegateError(
                f"{what}: the jars cannot be kept in {directory} ({error}); set {CACHE_VARIABLE} "
                "to a directory that can be written"
            ) from error
    return [directory / jar.file for jar in jars]


def _tell(progress: str) -> None:
    """Like the search for Java: a minute without a word would look like a hang."""
    print(progress, file=sys.stderr)


def _is_there(jar: Jar, directory: Path) -> bool:
    path = directory / jar.file
    if not path.is_file():
        return False
    if jar.matches(path):
        return True
    log.warning("%s has another checksum than the pinned one; it is fetched again", path)
    return False


def _fetch(
    missing: Sequence[Jar],
    directory: Path,
    what: str,
    fetch: Callable[[Sequence[str], Path], None],
) -> None:
    """Fetch jars beside the cache, and let in only those with the right checksum."""
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=directory) as scratch:
        beside = Path(scratch)
        try:
            fetch([jar.coordinates for jar in missing], beside)
        except JarsUnavailable as error:
            raise JarsUnavailable(
                f"{what} needs {len(missing)} jars that are not in {directory}, and they could not "
                f"be fetched ({error}); connect this machine to a Maven repository, name an Ivy "
                f"settings file with one in {SETTINGS_VARIABLE}, or copy that directory from a "
                f"machine that has them and point {CACHE_VARIABLE} at it"
            ) from error
        for jar in missing:
            got = beside / jar.file
            if not got.is_file():
                raise JarsUnavailable(
                    f"{what}: the repository answered without {jar.coordinates}; try again, or "
                    f"name another one in {SETTINGS_VARIABLE}"
                )
            if not jar.matches(got):
                raise TidegateError(
                    f"{what}: {jar.coordinates} was fetched with another checksum than the pinned "
                    f"one (sha256 {sha256_of(got)}, expected {jar.sha256}), so it was not kept; "
                    "ask who runs the repository or the proxy between why they differ"
                )
        for jar in missing:
            path = directory / jar.file
            path.parent.mkdir(parents=True, exist_ok=True)
            (beside / jar.file).replace(path)
