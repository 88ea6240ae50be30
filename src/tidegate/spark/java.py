"""Java, without which Spark does not start: looked for before it is needed."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from tidegate.errors import TidegateError

OLDEST = 17
INSTALL = (
    "install Java 17 or newer (Debian, Ubuntu: apt-get install -y openjdk-17-jre-headless; "
    "Fedora: dnf install java-17-openjdk-headless; macOS: brew install openjdk@17) "
    "or point JAVA_HOME at one"
)


def require_java() -> int:
    """The version of the Java that Spark would start, or an error that says what to install."""
    java = _java_binary()
    if java is None:
        raise TidegateError(f"Spark needs Java and none was found; {INSTALL}.")
    version = _major_version(java)
    if version is None:
        raise TidegateError(f"'{java} -version' gave no version; {INSTALL}.")
    if version < OLDEST:
        raise TidegateError(f"Spark needs Java {OLDEST}, and {java} is Java {version}; {INSTALL}.")
    return version


def _java_binary() -> str | None:
    """The same choice as Spark's own launcher: JAVA_HOME first, then the path."""
    home = os.environ.get("JAVA_HOME")
    if home:
        return shutil.which("java", path=str(Path(home) / "bin"))
    return shutil.which("java")


def _major_version(java: str) -> int | None:
    """17 for `17.0.15`, 8 for `1.8.0_312`; macOS has a `java` that only says there is none."""
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', run.stderr + run.stdout)
    return int(match.group(1)) if match else None
