"""Puts that depend on what is there: how two drivers on S3 are told apart without a rename.

`If-None-Match: *` writes an object only if there is none. The store decides, so of two drivers
exactly one succeeds.
"""

import time
from dataclasses import dataclass

from tidegate.errors import TidegateError
from tidegate.spark.s3.address import Address, is_s3
from tidegate.spark.s3.client import StoreRefusal, ask

_BUSY = 409
"""The status of a put during another one of the same key, when nobody knows yet which wins."""
_TRIES = 8
_PAUSE_S = 0.1


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects of a store. Their paths begin with the bucket, as pyarrow's do."""

    address: Address

    def create(self, path: str, content: bytes) -> bool:
        """Write an object unless there is one; returns whether this content is there now.

        If an answer was lost on its way, the client has asked again and was told that there is an
        object. It may be its own, so it is read.
        """
        return self._put(path, content) or self.read(path) == content

    def read(self, path: str) -> bytes | None:
        """The content of an object; None if there is none."""
        key = self._key(path)
        try:
            found = ask(self.address, f"reading {key}", "get_object", Key=key)
        except StoreRefusal as refusal:
            if refusal.missing:
                return None
            raise
        return bytes(found["Body"])

    def remove(self, path: str) -> None:
        """Remove an object; it does not matter if there is none."""
        key = self._key(path)
        ask(self.address, f"deleting {key}", "delete_object", Key=key)

    def _put(self, path: str, content: bytes) -> bool:
        """Put an object unless there is one; returns whether there was none."""
        key = self._key(path)
        given = {"Key": key, "Body": content, "IfNoneMatch": "*"}
        for attempt in range(_TRIES):
            try:
                ask(self.address, f"writing {key}", "put_object", **given)
                return True
            except StoreRefusal as refusal:
                if refusal.failed_condition:
                    return False
                if refusal.status != _BUSY:
                    raise
            time.sleep(_PAUSE_S * (attempt + 1))
        raise TidegateError(
            f"{self.address} answered {_TRIES} times that another put of {key} is under way; "
            "nothing was written; start again"
        )

    def _key(self, path: str) -> str:
        return path.removeprefix(f"{self.address.bucket}/")


def objects_of(url: str) -> Objects | None:
    """The objects behind a URL of S3; None for other filesystems."""
    return Objects(Address.of(url)) if is_s3(url) else None
