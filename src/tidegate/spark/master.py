"""Parses the Spark master string, so that a mistake in it is found before anything starts."""

import os
import re
import socket
from dataclasses import dataclass

from tidegate.errors import AskedWrongly, TidegateError

EXAMPLES = (
    "local[4], local[*], local-cluster[2,1,1024], spark://host:7077, yarn, k8s://https://host"
)

_LOCAL = re.compile(r"local(?:\[(\*|[1-9]\d*)(?:,[1-9]\d*)?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[ *([1-9]\d*) *, *([1-9]\d*) *, *([1-9]\d*) *\]")
_STANDALONE = re.compile(r"spark://([^\s:/,]+:\d+)(,[^\s:/,]+:\d+)*")
_KUBERNETES = re.compile(r"k8s://\S+")


@dataclass(frozen=True, slots=True)
class Master:
    """A master that Spark will accept."""

    url: str
    cores: int | None
    """The cores that the master string names; None if it names none."""
    on_this_machine: bool
    """Whether every process runs on this machine, so that all of them can use loopback."""

    @property
    def in_one_process(self) -> bool:
        """Whether tasks are threads of the driver, so that there are no executors to scale."""
        return _LOCAL.fullmatch(self.url) is not None

    @property
    def fills_this_machine(self) -> bool:
        """Whether Spark runs a cluster as processes of this machine, on all its cores or more."""
        machine = os.cpu_count() or 1
        return _LOCAL_CLUSTER.fullmatch(self.url) is not None and (self.cores or 0) >= machine

    @property
    def replaces_executors(self) -> bool:
        """Whether Spark itself replaces executors that failed: on YARN and on Kubernetes."""
        return self.url == "yarn" or _KUBERNETES.fullmatch(self.url) is not None


def parse_master(text: str) -> Master:
    """Parse a master string. Raises `AskedWrongly` if Spark would not accept it."""
    if match := _LOCAL.fullmatch(text):
        count = match.group(1)
        cores = (os.cpu_count() or 1) if count == "*" else int(count or 1)
        return Master(text, cores, on_this_machine=True)
    if match := _LOCAL_CLUSTER.fullmatch(text):
        return Master(text, int(match.group(1)) * int(match.group(2)), on_this_machine=True)
    if _STANDALONE.fullmatch(text):
        hosts = [address.rsplit(":", 1)[0] for address in text.removeprefix("spark://").split(",")]
        here = all(host == "localhost" or host.startswith("127.") for host in hosts)
        return Master(text, None, on_this_machine=here)
    if text == "yarn" or _KUBERNETES.fullmatch(text):
        return Master(text, None, on_this_machine=False)
    if text.startswith("sc://"):
        raise AskedWrongly(
            f"'{text}' is a Spark Connect server, whose driver is another process; Tidegate runs "
            "inside the driver, so give the master that the server itself uses"
        )
    raise AskedWrongly(f"'{text}' is not a Spark master; give one such as {EXAMPLES}.")


def on_this_machine(url: str) -> bool:
    """Whether all processes of a running session are here; not known of an unknown master."""
    try:
        return parse_master(url).on_this_machine
    except AskedWrongly:
        return False


def require_answer(master: Master) -> None:
    """Raise if nothing listens at a standalone master. Spark itself would retry for minutes."""
    if not _STANDALONE.fullmatch(master.url):
        return
    addresses = master.url.removeprefix("spark://").split(",")
    for address in addresses:
        host, port = address.rsplit(":", 1)
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
            return
        except (OSError, OverflowError):
            continue
    raise TidegateError(
        f"no Spark master answers at {' or '.join(addresses)}; start it or give another master."
    )
