"""Where a page is served, and who may see it: loopback without a token, elsewhere with one."""

import ipaddress
import os
import secrets
import socket
from dataclasses import dataclass

from tidegate.errors import AskedWrongly

LOOPBACK = "127.0.0.1"
TOKEN_VARIABLE = "TIDEGATE_PAGE_TOKEN"
"""The environment variable with the token; without it, one is drawn at random."""
_EXPECTED = "give a port such as 8787, 0 for any free one, or HOST:PORT such as '0.0.0.0:8787'"


@dataclass(frozen=True, slots=True)
class PageAddress:
    """A host and a port; port 0 stands for any that is free."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def token(self) -> str | None:
        """What a visitor has to know; None on loopback, where nobody else can come."""
        if self.loopback:
            return None
        return os.environ.get(TOKEN_VARIABLE) or secrets.token_urlsafe(16)

    def bound(self) -> socket.socket:
        """A socket that listens there; a port that is taken is refused in one sentence."""
        try:
            family = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0][0]
            listening = socket.create_server((self.host, self.port), family=family)
        except OSError as error:
            raise AskedWrongly(
                f"page: {self.host}:{self.port} cannot be listened on ({_why(error)}); give another"
                " port, or 0 for any that is free"
            ) from error
        listening.setblocking(False)
        return listening


def parse_address(asked: int | str) -> PageAddress:
    """The address that `page=` names."""
    text = str(asked).strip()
    host, colon, port = text.rpartition(":")
    if not colon:
        host = LOOPBACK
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or not 0 <= int(port) <= 65535:
        raise AskedWrongly(f"page={asked!r} is no address; {_EXPECTED}")
    return PageAddress(host, int(port))


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
