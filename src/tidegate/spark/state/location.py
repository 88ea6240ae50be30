"""Where a checkpoint is: checks of its URL before anything is read or written there."""

import os
import re
from pathlib import Path

from tidegate.errors import AskedWrongly

_LOGIN = re.compile(r"(?<=://)[^/?#@:]*:(?!\d+(?:/|$))[^?#]*@")
"""A user and a password, which may contain a slash; what follows a host and a port is a path."""
_SECRET = re.compile(r"(?i)([?&][^=&]*(?:secret|password|token|key|signature|sig)[^=&]*=)[^&#]*")


def masked(text: str) -> str:
    """The text with the passwords and keys of its URLs replaced by `***`."""
    return _SECRET.sub(r"\1***", _LOGIN.sub("***@", text))


def refuse_credentials(url: str, what: str) -> None:
    """Refuse a URL with a password or key in it.

    Masking it in our own messages would not be enough: the URL goes to every task, and from there
    into Spark's plans, event logs and errors.
    """
    if masked(url) != url:
        raise AskedWrongly(
            f"{what} {masked(url)} has credentials in its URL, which Spark would show in plans and "
            "errors; leave them out, and provide them on all machines by environment variables "
            "such as AWS_ACCESS_KEY_ID, or by a role of the machines"
        )


def location_of(checkpoint: str | os.PathLike[str]) -> str:
    """The checkpoint's URL or absolute path, because tasks run in other working directories."""
    if not isinstance(checkpoint, str | os.PathLike) or not str(checkpoint).strip():
        raise AskedWrongly(
            f"checkpoint={checkpoint!r}: give a directory or a URL, such as 'ads.ckpt' or "
            "'s3://bucket/ads'"
        )
    text = str(checkpoint)
    refuse_credentials(text, "the checkpoint")
    return text if "://" in text else str(Path(text).absolute())
