"""Keeps what a controller has learned with the checkpoint, so that a restart begins with it.

It is written every few seconds and at the end. A driver that is killed loses the last seconds of
it. It is an aid and not a part of the state: a file that cannot be read or written costs a minute
of learning and never a batch.
"""

import json
import threading
from typing import Any

from tidegate.control.controller import Controller
from tidegate.logs import PipelineLogger, reason
from tidegate.spark.loop.isolated import Isolated
from tidegate.spark.state.files import Durable, Missing

FILE = "learned.json"
KEEP_EVERY_S = 10.0
_CLOSE_S = 5.0
"""How long the end of a run waits for a store to take the last version."""


class KeptLearning:
    """The file of one pipeline. Its methods are called by the thread that ticks."""

    def __init__(self, place: Durable, controller: Controller, log: PipelineLogger) -> None:
        self._place = place
        self.controller = controller
        """The controller that learns; another one after a change of settings."""
        self._log = log
        self._writing = Isolated("keeping what was learned", log)
        self._kept_s: float | None = None
        self._thread: threading.Thread | None = None

    def recall(self, now_s: float) -> None:
        """Let the controller begin with what an earlier run learned, if that can be read."""
        try:
            unused = self.controller.recall(self._place.read_json(FILE), now_s)
        except Missing:
            return
        except Exception as error:  # a damaged file can be wrong in any way
            unused = reason(error)
        if unused is not None:
            self._log.warning(
                "what an earlier run learned cannot be used and is learned again: %s", unused
            )
        elif self.controller.began_with is not None:
            self._log.info("%s", self.controller.began_with)

    def tick(self, now_s: float) -> None:
        """Keep what was learned, if the last time is long enough ago."""
        if self._kept_s is None:
            self._kept_s = now_s
        if not 0.0 <= now_s - self._kept_s < KEEP_EVERY_S:
            self._kept_s = now_s
            self._keep()

    def close(self) -> None:
        """Keep the last version."""
        if self._kept_s is not None:
            self._keep()
        if self._thread is not None:
            self._thread.join(_CLOSE_S)

    def _keep(self) -> None:
        learned = self.controller.learned()
        if not learned:
            return
        if self._place.local:
            self._writing.call(lambda: self._write(learned))
            return
        if self._thread is not None and self._thread.is_alive():
            return  # the store is slow: the next version will do
        self._thread = threading.Thread(
            target=lambda: self._writing.call(lambda: self._write(learned)),
            name="tidegate-learned",
            daemon=True,
        )
        self._thread.start()

    def _write(self, learned: dict[str, Any]) -> None:
        content = json.dumps(learned, separators=(",", ":"), allow_nan=False)
        self._place.write(FILE, content.encode())
