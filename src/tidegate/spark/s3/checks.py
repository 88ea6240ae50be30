"""What must hold of a bucket before a pipeline starts on it. A refusal is one sentence.

pyarrow takes a bucket that does not exist for an empty one, and a store that ignores conditions
would let two drivers commit the same batch. Both are found out here by asking the store.
"""

import uuid

from tidegate.errors import AskedWrongly
from tidegate.spark.s3.address import Address, is_s3
from tidegate.spark.s3.client import StoreRefusal, ask

_PROBE = "owner/.probe"


def check_readable(url: str) -> None:
    """Refuse a bucket that is not there, cannot be listed or cannot be read. Nothing is written.

    Other filesystems are not asked.
    """
    if not is_s3(url):
        return
    address = Address.of(url)
    listed = {"Prefix": _below(address, ""), "MaxKeys": 1}
    ask(address, "listing objects", "list_objects_v2", **listed)
    try:
        ask(address, "reading objects", "get_object", Key=_below(address, "pipeline.json"))
    except StoreRefusal as refusal:
        if not refusal.missing:
            raise


def check_exclusive(url: str) -> None:
    """Refuse a store on which two drivers could not be told apart, or that cannot be written.

    On S3 a new object is put twice under a condition that holds only once, and removed again.
    Other filesystems are not asked.
    """
    if not is_s3(url):
        return
    address = Address.of(url)
    key = _below(address, f"{_PROBE}-{uuid.uuid4().hex[:12]}")
    if not _put(address, key):
        raise _unconditional(address)
    try:
        again = _put(address, key)
    finally:
        ask(address, "deleting objects", "delete_object", Key=key)
    if again:
        raise _unconditional(address)


def _put(address: Address, key: str) -> bool:
    """Put an object on the condition that there is none; returns whether the store took it."""
    given = {"Key": key, "Body": b"probe", "IfNoneMatch": "*"}
    try:
        ask(address, "writing objects", "put_object", **given)
    except StoreRefusal as refusal:
        if refusal.status == 501 or refusal.code == "NotImplemented":
            raise _unconditional(address) from refusal
        if refusal.failed_condition or refusal.status == 409:
            return False
        raise
    return True


def _unconditional(address: Address) -> AskedWrongly:
    return AskedWrongly(
        f"{address} does not honour conditional puts (If-None-Match), so two drivers on one "
        "checkpoint could not be told apart; use a store that does, such as Amazon S3, or a "
        "checkpoint on a shared file system"
    )


def _below(address: Address, name: str) -> str:
    return f"{address.key}/{name}" if address.key else name
