"""The lease of a driver on its checkpoint: taken at the start, renewed while it runs.

A second driver on the same checkpoint is refused at its start as long as the first shows signs of
life. If the first is gone, or shows none for `PATIENCE_S`, the second takes over. The first, should
it wake up, finds the newer claim before its next sink call or commit, and ends (`Epochs.check`).
"""

import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime

from tidegate.errors import AskedWrongly
from tidegate.spark.owner.epochs import Epoch, Epochs, Fenced
from tidegate.spark.owner.lease import Lease
from tidegate.spark.owner.process import Process

BEAT_S = 2.0
"""How often an owner shows that it is alive."""
PATIENCE_S = 12.0
"""An owner of which nothing is seen for this long has lost its checkpoint."""
_POLL_S = 0.25
_log = logging.getLogger("tidegate.owner")
_held: dict[str, "Owner"] = {}
"""The owners of this process, by the token of their epochs."""


class InUse(AskedWrongly):
    """Somebody else has the checkpoint, and is alive."""


class Owner:
    """Holds this driver's lease on a checkpoint: renews it, and tells when it is lost."""

    def __init__(self, lease: Lease, pipeline: str) -> None:
        self.lease = lease
        self.pipeline = pipeline
        self._on_lost: Callable[[Fenced], None] | None = None
        self._lost: Fenced | None = None
        self._guard = threading.Lock()
        self._ended = threading.Event()
        self._beats = 0
        self._thread = threading.Thread(target=self._renew, name="tidegate-owner", daemon=True)

    def when_lost(self, tell: Callable[[Fenced], None]) -> None:
        """Call this once when another driver has the lease, or now if one has it already."""
        with self._guard:
            self._on_lost, lost = tell, self._lost
        if lost is not None:
            tell(lost)

    def start(self) -> None:
        """Renew the lease until `release`."""
        self.lease.beat(0)
        _held[self.lease.epoch.token] = self
        self._thread.start()

    def release(self) -> None:
        """Give the checkpoint up, so that the next start need not wait. Safe to call twice."""
        if self._ended.is_set():
            return
        self._ended.set()
        _held.pop(self.lease.epoch.token, None)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(BEAT_S)
        try:
            self.lease.beat(self._beats + 1, released=True)
        except Exception as error:
            _log.warning(
                "pipeline '%s': the checkpoint could not be given up (%s); the next start may wait",
                self.pipeline,
                error,
            )

    def _renew(self) -> None:
        while not self._ended.wait(BEAT_S):
            try:
                self.lease.check()
                self._beats += 1
                self.lease.beat(self._beats)
            except Fenced as error:
                _held.pop(self.lease.epoch.token, None)
                with self._guard:
                    self._lost, tell = error, self._on_lost
                if tell is not None:
                    tell(error)
                return
            except Exception as error:  # whatever it is, the next beat may work
                _log.warning(
                    "pipeline '%s': the lease on its checkpoint could not be renewed (%s); that is "
                    "tried again in %.0f s",
                    self.pipeline,
                    error,
                    BEAT_S,
                )


def take(epochs: Epochs, pipeline: str, *, patience_s: float = PATIENCE_S) -> Owner:
    """Take the checkpoint for this driver; an error names the driver that has it."""
    process = Process.here()
    while True:
        newest = epochs.newest()
        if newest is not None:
            _refuse_if_used(epochs, newest, pipeline, patience_s)
        epoch = epochs.make(newest, process, time.time())
        if epoch is not None:
            owner = Owner(Lease(epochs, epoch), pipeline)
            owner.start()
            return owner


def _refuse_if_used(epochs: Epochs, newest: Epoch, pipeline: str, patience_s: float) -> None:
    """Return if the newest claim was given up or is dead; raise if its driver is alive."""
    if newest.token in _held:
        raise _in_use(epochs, newest, "another run of this process")
    first, released = epochs.last_beat(newest)
    if released or newest.process.gone or newest.process == Process.here():
        return
    _log.warning(
        "pipeline '%s': %s has its checkpoint; watching for up to %.0f s whether it is alive",
        pipeline,
        newest.process,
        patience_s,
    )
    until_s = time.monotonic() + patience_s
    while time.monotonic() < until_s:
        beat, released = epochs.last_beat(newest)
        if released or newest.process.gone:
            return
        if beat != first:
            raise _in_use(epochs, newest, str(newest.process))
        time.sleep(_POLL_S)


def _in_use(epochs: Epochs, epoch: Epoch, who: str) -> InUse:
    since = datetime.fromtimestamp(epoch.since_s).isoformat(" ", "seconds")
    return InUse(
        f"the checkpoint {epochs.directory.url.removesuffix('/owner')} is in use by {who} since "
        f"{since}; stop that run first, or give another checkpoint"
    )
