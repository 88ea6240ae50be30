"""A producer as a child process, so that it keeps its pace whatever this process does.

It begins as soon as it is started, and ends with its load or when it is asked to. It also ends when
this process does.
"""

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import tidegate
from tidegate.errors import TidegateError
from tidegate.spark.kafka.client import confluent
from tidegate.spark.kafka.produced import Produced
from tidegate.spark.kafka.topic_load import TopicLoad

_BEGIN_S = 60.0
_PATIENCE_S = 120.0


class ProducerProcess:
    """A running producer: `ProducerProcess(servers, topic, load)`, then `wait()`."""

    def __init__(
        self,
        servers: str,
        topic: str,
        load: TopicLoad,
        *,
        start_ms: int | None = None,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        """Start it; the arguments are those of `produce`."""
        confluent()  # says here, not in the child, that it is missing
        self._patience_s = patience_s
        self._begun, self._ended = threading.Event(), threading.Event()
        self._lines: list[dict[str, Any]] = []
        root = Path(tidegate.__file__).resolve().parent.parent
        paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tidegate.spark.kafka.producing"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,  # Ctrl-C is for this process, which then stops it
        )
        threading.Thread(target=self._read, name="tidegate-producer", daemon=True).start()
        asked = {
            "servers": servers,
            "topic": topic,
            "start_ms": start_ms,
            "patience_s": patience_s,
            "load": load.document(),
        }
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # if it has failed already, `begin` and `wait` say why
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def begin(self) -> int:
        """Wait until the profile has begun; returns when, in milliseconds since the epoch."""
        if not self._begun.wait(_BEGIN_S):
            raise TidegateError(f"the producer did not begin within {_BEGIN_S:g} s")
        if not self._lines:
            raise self._failure()
        return int(self._first("begun_ms"))

    def wait(self, timeout_s: float | None = None) -> Produced:
        """Wait for its end; returns what it produced."""
        if not self._ended.wait(timeout_s):
            raise TidegateError(f"the producer has not ended after {timeout_s:g} s")
        self._process.wait()
        return Produced.of_document(self._first("produced"))

    def stop(self) -> Produced:
        """Ask it to send no more, and return what the broker has acknowledged."""
        self._close_input()
        return self.wait(2 * self._patience_s)

    def kill(self) -> None:
        """End it at once; what it has produced is not known then."""
        self._process.kill()
        self._process.wait()
        self._close_input()

    def __enter__(self) -> "ProducerProcess":
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()

    def _close_input(self) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def _read(self) -> None:
        """In a thread: take what the child says, line by line, until it ends."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.append(json.loads(line))
            self._begun.set()
        self._begun.set()
        self._ended.set()

    def _first(self, name: str) -> Any:
        """What the child said under this name; if it said why it failed, that is raised."""
        for line in self._lines:
            if name in line:
                return line[name]
        raise self._failure()

    def _failure(self) -> TidegateError:
        said = [line["error"] for line in self._lines if "error" in line]
        code = self._process.poll()
        return TidegateError(said[0] if said else f"the producer ended with {code} too early")
