"""Whether a Kafka broker answers at an address, without a Kafka client.

Kafka's port is open some time before requests are answered, so a connection proves nothing. The
request for API versions, the first one that every client sends, is so small that it is written out
here.
"""

import socket
import struct

from tidegate.errors import AskedWrongly, TidegateError

_API_VERSIONS, _VERSION, _CORRELATION = 18, 0, 7
_NAME = b"tidegate"


def require_broker(servers: str, *, encrypted: bool = False) -> None:
    """Refuse an address that no broker answers at; clients would retry for minutes.

    One that speaks TLS is only asked whether its port is open.
    """
    for address in servers.split(","):
        _, colon, port = address.strip().rpartition(":")
        if not colon or not port.isdigit():
            raise AskedWrongly(f"'{servers}' is no Kafka address; give HOST:PORT, or several")
    if not answers(servers, encrypted=encrypted):
        raise TidegateError(
            f"no Kafka broker answers at {servers}; start it, or give another address"
        )


def answers(servers: str, timeout_s: float = 2.0, *, encrypted: bool = False) -> bool:
    """Whether a broker answers a request at HOST:PORT, or at one of several, with commas."""
    ask = _listens if encrypted else _answers
    return any(ask(*_place(address), timeout_s) for address in servers.split(","))


def _place(address: str) -> tuple[str, str]:
    """Host and port, from all that Kafka's clients take: also `SSL://host:9092`, `[::1]:9092`."""
    host, _, port = address.strip().rpartition("://")[2].rpartition(":")
    return host.strip("[]"), port


def _listens(host: str, port: str, timeout_s: float) -> bool:
    try:
        socket.create_connection((host, int(port)), timeout=timeout_s).close()
    except (OSError, ValueError, OverflowError):
        return False
    return True


def _answers(host: str, port: str, timeout_s: float) -> bool:
    header = struct.pack(">hhih", _API_VERSIONS, _VERSION, _CORRELATION, len(_NAME)) + _NAME
    try:
        with socket.create_connection((host, int(port)), timeout=timeout_s) as connection:
            connection.settimeout(timeout_s)
            connection.sendall(struct.pack(">i", len(header)) + header)
            with connection.makefile("rb") as answer:
                size, correlation, error = struct.unpack(">iih", answer.read(10))
    except (OSError, ValueError, OverflowError, struct.error):
        return False
    return bool(size > 6 and correlation == _CORRELATION and error == 0)
