"""Hadoop's daemons as child processes, from Apache's published jars, which `hadoop.lock` pins.

Each daemon has a directory for its configuration, its log and its files, and listens on the
loopback only. It ends with the process that started it.
"""

import functools
import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from tidegate.errors import TidegateError
from tidegate.spark.child import GuardedChild
from tidegate.spark.jars.cache import jars_of
from tidegate.spark.java import find_java, home_for_spark

LOCK = Path(__file__).with_name("hadoop.lock")
HOST = "127.0.0.1"
_READY_S, _STOP_S, _RUN_S = 90.0, 10.0, 60.0
_JAVA_OPTIONS = ("-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""They share the machine with Spark, and run too short to earn back an optimising compiler."""
_LOG4J = """\
log4j.rootLogger=WARN, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{HH:mm:ss.SSS} %p %c{1}: %m%n
"""


@functools.cache
def hadoop_jars() -> list[Path]:
    """The jars of the daemons; they are fetched (about 110 MB) if they are not there yet."""
    return jars_of(LOCK, "Hadoop")


def write_site(directory: Path, name: str, settings: Mapping[str, str | int | bool]) -> None:
    """Write a configuration file of Hadoop, such as `hdfs-site.xml`."""
    rows = "".join(
        f"  <property><name>{escape(key)}</name><value>{escape(_text(value))}</value></property>\n"
        for key, value in settings.items()
    )
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(f"<configuration>\n{rows}</configuration>\n", encoding="utf-8")


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Daemon:
    """One daemon of Hadoop. Its configuration is in `directory/conf`, its log beside it."""

    def __init__(self, name: str, main_class: str, directory: Path) -> None:
        self.name, self.directory = name, directory
        self._class = main_class
        self._child: GuardedChild | None = None
        (directory / "tmp").mkdir(parents=True, exist_ok=True)
        (directory / "conf").mkdir(exist_ok=True)
        (directory / "conf" / "log4j.properties").write_text(_LOG4J, encoding="utf-8")

    @property
    def configuration(self) -> Path:
        """The directory of its configuration files."""
        return self.directory / "conf"

    @property
    def running(self) -> bool:
        """Whether its process runs."""
        return self._child is not None and self._child.process.poll() is None

    def run(self, main_class: str, *words: str) -> None:
        """Run a command of Hadoop with this configuration until it ends; raise if it failed."""
        run = subprocess.run(
            self._command(main_class, *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=self._environment(),
            timeout=_RUN_S,
        )
        if run.returncode != 0:
            told = "\n".join(run.stdout.strip().splitlines()[-8:])
            raise TidegateError(f"{main_class} {' '.join(words)} failed: {told or 'no output'}")

    def start(self) -> None:
        """Start its process, which takes some seconds to answer (`await_ready`)."""
        self._child = GuardedChild(self._command(self._class), self._log, self._environment())

    def await_ready(self, ready: Callable[[], bool], what: str) -> None:
        """Wait for a condition; raise with the daemon's last words if it ends before."""
        until_s = time.monotonic() + _READY_S
        while not ready():
            if not self.running:
                raise TidegateError(f"{self.name} ended before {what}{self.last_words()}")
            if time.monotonic() > until_s:
                raise TidegateError(f"{self.name}: not {what} in {_READY_S:g} s{self.last_words()}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Ask it to end, and wait until it has."""
        child, self._child = self._child, None
        if child is not None:
            child.stop(_STOP_S)

    def kill(self) -> None:
        """End it at once, as a loss of power does."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()

    def last_words(self) -> str:
        """The last lines of its log, the only hint when it did not start."""
        if not self._log.is_file():
            return ""
        return "\n" + "\n".join(self._log.read_text(errors="replace").splitlines()[-12:])

    @property
    def _log(self) -> Path:
        return self.directory / "daemon.log"

    def _command(self, main_class: str, *words: str) -> list[str]:
        classes = os.pathsep.join([str(self.configuration), *(str(jar) for jar in hadoop_jars())])
        return [
            str(find_java().binary),
            *_JAVA_OPTIONS,
            f"-Djava.io.tmpdir={self.directory / 'tmp'}",
            *("-cp", classes, main_class, *words),
        ]

    def _environment(self) -> Mapping[str, str]:
        # Containers of a NodeManager start Spark with this JAVA_HOME.
        home = home_for_spark(find_java(), self.directory)
        given = {"HADOOP_CONF_DIR": str(self.configuration), "JAVA_HOME": str(home)}
        return {**os.environ, **given}


def asked(url: str) -> Any:
    """The JSON document at a URL; None while nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return json.load(answer)
    except (OSError, ValueError):
        return None
