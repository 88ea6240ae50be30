"""The claims on a checkpoint: each start claims the next *epoch* by creating one small file.

The newest claim owns the checkpoint. The owner of an older one finds a newer file before it calls
a sink or commits, and ends. Signs of life are files of their own, so that an old owner that wakes
up never writes over a newer claim.
"""

import json
import uuid
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
class Claim:
    """A driver's claim on a checkpoint."""

    epoch: int
    token: str
    """Tells apart two drivers that claimed the same epoch on a store that let both."""
    process: Process
    since_s: float

    @property
    def mark(self) -> str:
        """What the owner's files carry in their names."""
        return f"{self.epoch:06d}-{self.token}"

    def to_json(self) -> dict[str, Any]:
        """The form in the checkpoint."""
        return {
            "epoch": self.epoch,
            "token": self.token,
            "process": self.process.to_json(),
            "since_s": self.since_s,
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "Claim":
        """The reverse of `to_json`."""
        return cls(
            document["epoch"],
            document["token"],
            Process.from_json(document["process"]),
            document["since_s"],
        )


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims in the directory `owner` of a checkpoint."""

    directory: Durable

    def newest(self) -> Claim | None:
        """The claim that owns the checkpoint; None if nobody ever started on it.

        A listing may lag behind, so the files after the newest listed one are asked for by name.
        """
        listed = [name for name in self.directory.names() if name.endswith(".json")]
        epoch = int(listed[-1].removesuffix(".json")) if listed else 0
        while self.directory.exists(_name(epoch + 1)):
            epoch += 1
        return self.read(epoch)

    def read(self, epoch: int) -> Claim | None:
        """The claim of one epoch; None if there was none, or it was removed long ago."""
        try:
            return Claim.from_json(self.directory.read_json(_name(epoch)))
        except Missing:
            return None

    def make(self, after: Claim | None, process: Process, now_s: float) -> Claim | None:
        """Claim the epoch after this one; None if another driver was quicker."""
        self.directory.make()
        epoch = 1 if after is None else after.epoch + 1
        claim = Claim(epoch, uuid.uuid4().hex[:8], process, now_s)
        content = json.dumps(claim.to_json(), separators=(",", ":")).encode()
        if not self.directory.create(_name(epoch), content):
            return None
        self.directory.sweep((), epoch - KEPT)
        return claim

    def check(self, claim: Claim) -> None:
        """Raise `Fenced` unless this claim still owns the checkpoint."""
        current = self.read(claim.epoch)
        if current == claim and not self.directory.exists(_name(claim.epoch + 1)):
            return
        newest = self.newest()
        by = "another driver" if newest is None else str(newest.process)
        raise Fenced(
            f"{by} has taken over the checkpoint {self.directory.url.removesuffix('/owner')}, "
            "because this driver gave no sign of life for a while; this one ends and has "
            "committed nothing since"
        )

    def beat(self, claim: Claim, number: int, *, released: bool = False) -> None:
        """Leave a sign of life, or the sign that the claim is given up."""
        document = {"token": claim.token, "beat": number, "released": released}
        self.directory.write_json(_beat(claim.epoch), document)

    def last_beat(self, claim: Claim) -> tuple[int, bool]:
        """The number of a claim's last sign of life, and whether it was given up."""
        try:
            document = self.directory.read_json(_beat(claim.epoch))
        except Missing:
            return -1, False
        if document["token"] != claim.token:
            return -1, False
        return document["beat"], document["released"]


def _name(epoch: int) -> str:
    return f"{epoch:010d}.json"


def _beat(epoch: int) -> str:
    return f"{epoch:010d}.beat"
