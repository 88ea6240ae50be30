"""The claims on a checkpoint: each start claims the next *epoch* by creating one small file.

The newest claim owns the checkpoint. The owner of an older one finds a newer file before it calls
a sink or commits, and ends. Signs of life are files of their own, so that an old owner that wakes
up never writes over a newer claim.
"""

import json
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tidegate.errors import TidegateError
from tidegate.spark.owner.process import Process
from tidegate.spark.state.files import Durable, Missing

KEPT = 64
"""How many claims are kept. An owner whose claim was removed is no owner any more."""


class Fenced(TidegateError):
    """Another driver has taken the checkpoint over; this one must not commit any more."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """The time from one start on a checkpoint to the next, claimed by the driver that started."""

    number: int
    token: str
    """Tells apart two claims of the same number, as after a copy of a checkpoint was restored."""
    process: Process
    since_s: float

    @property
    def mark(self) -> str:
        """What the owner's files carry in their names."""
        return f"{self.number:06d}-{self.token}"

    def to_json(self) -> dict[str, Any]:
        """The form in the checkpoint."""
        return {
            "epoch": self.number,
            "token": self.token,
            "process": self.process.to_json(),
            "since_s": self.since_s,
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "Epoch":
        """The reverse of `to_json`."""
        return cls(
            document["epoch"],
            document["token"],
            Process.from_json(document["process"]),
            document["since_s"],
        )


@dataclass(frozen=True, slots=True)
class Epochs:
    """The claims in the directory `owner` of a checkpoint."""

    directory: Durable

    def newest(self) -> Epoch | None:
        """The claim that owns the checkpoint; None if nobody ever started on it.

        A listing may lag behind, so the files after the newest listed one are asked for by name.
        """
        listed = [name for name in self.directory.names() if name.endswith(".json")]
        number = int(listed[-1].removesuffix(".json")) if listed else 0
        while self.directory.exists(_name(number + 1)):
            number += 1
        return self.read(number)

    def read(self, number: int) -> Epoch | None:
        """The claim of one epoch; None if there was none, or it was removed long ago."""
        try:
            return Epoch.from_json(self.directory.read_json(_name(number)))
        except Missing:
            return None
        except (KeyError, TypeError):
            raise TidegateError(
                f"the file {self.directory.path(_name(number))} is not a claim on the checkpoint; "
                "make sure that no driver uses the checkpoint, and remove the file"
            ) from None

    def make(self, after: Epoch | None, process: Process, now_s: float) -> Epoch | None:
        """Claim the epoch after this one; None if another driver was quicker."""
        self.directory.make()
        number = 1 if after is None else after.number + 1
        mine = Epoch(number, uuid.uuid4().hex[:8], process, now_s)
        content = json.dumps(mine.to_json(), separators=(",", ":")).encode()
        try:
            if not self.directory.create(_name(number), content):
                return None
        except FileNotFoundError:
            return None  # paused for so many starts that its half written claim was swept
        with suppress(OSError, TidegateError):  # what stays costs only space
            self.directory.sweep((), number - KEPT)
        return mine

    def check(self, mine: Epoch) -> None:
        """Raise `Fenced` unless this epoch still lasts."""
        current = self.read(mine.number)
        if current == mine and not self.directory.exists(_name(mine.number + 1)):
            return
        newest = self.newest()
        by = "another driver" if newest is None else str(newest.process)
        raise Fenced(
            f"{by} has taken over the checkpoint {self.directory.url.removesuffix('/owner')}, "
            "because this driver gave no sign of life for a while; this one ends and has "
            "committed nothing since"
        )

    def beat(self, mine: Epoch, number: int, *, released: bool = False) -> None:
        """Leave a sign of life, or the sign that the claim is given up."""
        document = {"token": mine.token, "beat": number, "released": released}
        self.directory.write_json(_beat(mine.number), document)

    def last_beat(self, epoch: Epoch) -> tuple[int, bool]:
        """The number of a claim's last sign of life, and whether it was given up."""
        try:
            document = self.directory.read_json(_beat(epoch.number))
        except Missing:
            return -1, False
        if document.get("token") != epoch.token:
            return -1, False
        return document.get("beat", -1), document.get("released", False)


def _name(number: int) -> str:
    return f"{number:010d}.json"


def _beat(number: int) -> str:
    return f"{number:010d}.beat"
