"""A host that is some times slower than the others.

Its processes are stopped and continued by turns, many times a second, so that whatever they do
takes that much longer: computing as well as waiting.
"""

import threading
from typing import Self

from tidegate.errors import AskedWrongly
from tidegate.spark.clusters.hosts import Host

_TURN_S = 0.1
"""How long a process is stopped and running, taken together."""


class SlowHost:
    """Makes a host slow inside a `with` block."""

    def __init__(self, host: Host, times: float) -> None:
        if times <= 1.0:
            raise AskedWrongly(f"a host that is {times:g} times slower: give more than 1")
        self._host, self._times = host, times
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="slow-host", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        running_s = _TURN_S / self._times
        while not self._end.is_set():
            self._host.pause()
            self._end.wait(_TURN_S - running_s)
            self._host.resume()
            self._end.wait(running_s)
        self._host.resume()
