"""Addresses of pages: what is understood, what is refused, and who needs a token."""

import socket

import pytest

from tidegate.errors import AskedWrongly
from tidegate.view.live.page.address import TOKEN_VARIABLE, PageAddress, parse_address


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (8787, PageAddress("127.0.0.1", 8787)),
        (0, PageAddress("127.0.0.1", 0)),
        ("8787", PageAddress("127.0.0.1", 8787)),
        ("0.0.0.0:80", PageAddress("0.0.0.0", 80)),
        ("[::1]:8787", PageAddress("::1", 8787)),
        ("node-7:8787", PageAddress("node-7", 8787)),
    ],
)
def test_an_address_is_a_port_or_host_and_port(asked: int | str, expected: PageAddress) -> None:
    assert parse_address(asked) == expected


@pytest.mark.parametrize("asked", [-1, 65536, "", ":8787", "host:", "host", "1e3", "a:b:c", "٣"])
def test_others_are_refused_with_what_is_expected(asked: int | str) -> None:
    with pytest.raises(AskedWrongly, match="give a port such as 8787"):
        parse_address(asked)


def test_only_what_others_can_reach_has_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    for host in ("127.0.0.1", "127.8.8.8", "localhost", "::1"):
        assert PageAddress(host, 1).token() is None
    for host in ("0.0.0.0", "::", "192.168.1.7", "node-7"):
        token = PageAddress(host, 1).token()
        assert token is not None and len(token) >= 20
        assert token != PageAddress(host, 1).token()
    monkeypatch.setenv(TOKEN_VARIABLE, "chosen")
    assert PageAddress("0.0.0.0", 1).token() == "chosen"


def test_a_port_that_is_taken_is_refused_in_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(AskedWrongly) as refused:
            PageAddress("127.0.0.1", port).bound()
    sentence = str(refused.value)
    assert f"127.0.0.1:{port}" in sentence and "already in use" in sentence
    assert "0 for any that is free" in sentence and "\n" not in sentence
