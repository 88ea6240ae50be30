"""A real Kafka broker as a child process: for tests, the demo and benchmarks.

One node on the loopback (KRaft: no ZooKeeper), from Apache's published jars, which `broker.lock`
pins. It ends with the process that started it. Killed and restarted, it continues on the same data
and the same port, so that clients find it again.
"""

import atexit
import shutil
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

from tidegate.errors import TidegateError
from tidegate.spark.child import GuardedChild
from tidegate.spark.jars.cache import jars_of
from tidegate.spark.java import find_java
from tidegate.spark.java_log import QUIET_LOG4J
from tidegate.spark.kafka.answering import answers
from tidegate.spark.kafka.broker_settings import BrokerSettings
from tidegate.spark.ports import free_ports

LOCK = Path(__file__).with_name("broker.lock")
_WHAT = "the Kafka broker"
_READY_S, _STOP_S = 60.0, 20.0
_TRIES = 3
"""Another process may take a free port before the broker does."""
_JAVA_OPTIONS = ("-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""It shares the machine with Spark, and runs too short to earn back an optimising compiler."""


def broker_jars() -> list[Path]:
    """The jars of the broker; they are fetched (43 MB) if they are not there yet."""
    return jars_of(LOCK, _WHAT)


class Broker:
    """A broker that runs from its creation on: `with Broker() as broker: broker.servers`."""

    def __init__(self, directory: Path | None = None) -> None:
        """Start a new broker with its files in `directory`; by default a temporary one."""
        self._java = str(find_java().binary)
        self._classes = ":".join(str(jar) for jar in broker_jars())
        self._owned = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="tidegate-kafka-"))
        self._child: GuardedChild | None = None
        atexit.register(self.close)
        try:
            self._settings = self._first_start()
        except BaseException:
            self.close()
            raise

    @property
    def servers(self) -> str:
        """The value of Kafka's `bootstrap.servers`: 127.0.0.1 and a port."""
        return self._settings.servers

    @property
    def pid(self) -> int:
        """The process of the broker."""
        if self._child is None:
            raise TidegateError("the Kafka broker is not running; restart it first")
        return self._child.process.pid

    def stop(self) -> None:
        """End it in order; its data stay, and `restart` continues with them."""
        child, self._child = self._child, None
        if child is not None:
            child.stop(_STOP_S)

    def kill(self) -> None:
        """End it as `kill -9` does; its data stay, and `restart` continues with them."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()

    def restart(self) -> None:
        """Start it again on the same data and the same port, and wait until it answers."""
        self.stop()
        self._start(self._settings)

    def close(self) -> None:
        """End it, and remove its files if their directory is a temporary one."""
        atexit.unregister(self.close)
        if self._owned:
            self.kill()  # nobody will read what it could still write
            shutil.rmtree(self.directory, ignore_errors=True)
        else:
            self.stop()

    def __enter__(self) -> "Broker":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _first_start(self) -> BrokerSettings:
        """Format the storage and start; on other ports if somebody has taken these meanwhile."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if (self.directory / "data").exists():
            raise TidegateError(
                f"{self.directory} already has the data of a broker; give an empty directory"
            )
        (self.directory / "tmp").mkdir(exist_ok=True)
        (self.directory / "log4j2.properties").write_text(QUIET_LOG4J, encoding="utf-8")
        for attempt in range(_TRIES):
            settings = BrokerSettings(self.directory, *free_ports(2))
            self._properties.write_text(settings.properties(), encoding="utf-8")
            if attempt == 0:
                self._format()
            try:
                self._start(settings)
                return settings
            except TidegateError:
                if attempt == _TRIES - 1 or "Address already in use" not in self._last_words():
                    raise
        raise AssertionError("not reached")

    @property
    def _properties(self) -> Path:
        return self.directory / "server.properties"

    @property
    def _log(self) -> Path:
        return self.directory / "broker.log"

    def _command(self, *arguments: str) -> list[str]:
        logging = (self.directory / "log4j2.properties").as_uri()
        return [
            self._java,
            *_JAVA_OPTIONS,
            f"-Dlog4j2.configurationFile={logging}",
            f"-Djava.io.tmpdir={self.directory / 'tmp'}",
            *("-cp", self._classes, *arguments),
        ]

    def _format(self) -> None:
        """Write the storage's metadata, which a broker does not start without."""
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        arguments = ("format", "-t", cluster, "-c", str(self._properties))
        run = subprocess.run(
            self._command("kafka.tools.StorageTool", *arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        if run.returncode != 0:
            raise TidegateError(
                f"the Kafka broker's storage in {self.directory} could not be formatted: "
                f"{(run.stdout.strip().splitlines() or ['it said nothing'])[-1]}"
            )

    def _start(self, settings: BrokerSettings) -> None:
        """Start the process and wait until it answers."""
        self._log.unlink(missing_ok=True)
        child = GuardedChild(self._command("kafka.Kafka", str(self._properties)), self._log)
        self._child = child
        until_s = time.monotonic() + _READY_S
        while not answers(settings.servers):
            try:
                code = child.process.wait(0.05)
            except subprocess.TimeoutExpired:
                if time.monotonic() < until_s:
                    continue
                self.kill()
                raise TidegateError(
                    f"the Kafka broker did not answer at {settings.servers} within {_READY_S:g} s"
                    f"{self._last_words()}"
                ) from None
            self.kill()
            raise TidegateError(
                f"the Kafka broker ended with {code} before it answered{self._last_words()}"
            )

    def _last_words(self) -> str:
        """The last lines of the broker's log, the only hint when it did not start."""
        if not self._log.is_file():
            return ""
        return "\n" + "\n".join(self._log.read_text(errors="replace").splitlines()[-8:])
