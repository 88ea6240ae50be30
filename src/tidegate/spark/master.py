"""Where Spark runs: the master string, understood before anything is started."""

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
    """Cores it has from the start, where the string says so."""
    on_this_machine: bool
    """Every process is on this machine, so that all of them can talk over loopback."""

    @property
    def in_one_process(self) -> bool:
        """Tasks are threads of the driver: no executors to ask for or to lose."""
        return _LOCAL.fullmatch(self.url) is not None


def parse_master(text: str) -> Master:
    """The master that `text` names, or one sentence about what is wrong with it."""
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
    raise AskedWrongly(f"'{text}' is no Spark master; give one such as {EXAMPLES}.")


def require_answer(master: Master) -> None:
    """Fails at once when nothing listens at a standalone master; Spark itself tries for minutes."""
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
