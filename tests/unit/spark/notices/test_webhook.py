"""Posting to a real server on the loopback, which answers, refuses, fails or hangs."""

import socket

import pytest

from tests.helpers.hook_server import hook_server
from tidegate.errors import AskedWrongly
from tidegate.spark.notices.outbox import NotDelivered
from tidegate.spark.notices.webhook import PAUSES_S, Webhook


class Waits:
    """Waits no time, and remembers how long it was to wait."""

    def __init__(self, *, closing: bool = False) -> None:
        self.pauses_s: list[float] = []
        self.closing = closing

    def __call__(self, seconds: float, /) -> bool:
        self.pauses_s.append(seconds)
        return self.closing


BODY = {"text": "shop: the target of 2 s is met again", "figures": {"cores": 4.0}}


def test_the_document_arrives_as_it_is() -> None:
    with hook_server() as hook:
        Webhook(hook.url).send(BODY, Waits())
        assert hook.posts == [BODY]
        assert hook.paths == ["/services/T0/SECRET?key=ALSO"]
        assert hook.headers[0]["Content-Type"] == "application/json"
        assert "Authorization" not in hook.headers[0]


def test_a_user_and_password_are_sent_as_such() -> None:
    with hook_server() as hook:
        Webhook(f"http://ops:p%40ss@127.0.0.1:{hook.port}/in#x").send(BODY, Waits())
        assert hook.headers[0]["Authorization"] == "Basic b3BzOnBAc3M="  # ops:p@ss
        assert hook.headers[0]["Host"] == f"127.0.0.1:{hook.port}"
        assert hook.paths == ["/in"]


@pytest.mark.parametrize("answers", [[500], [503, 429], [408, 500]])
def test_what_may_pass_is_tried_again(answers: list[int]) -> None:
    waits = Waits()
    with hook_server() as hook:
        hook.answers = list(answers)
        Webhook(hook.url).send(BODY, waits)
        assert len(hook.posts) == len(answers) + 1
    assert waits.pauses_s == list(PAUSES_S[: len(answers)])


def test_it_is_given_up_after_three_tries() -> None:
    waits = Waits()
    with hook_server() as hook:
        hook.answers = [500] * 10
        with pytest.raises(NotDelivered, match="it answered 500 Internal Server Error"):
            Webhook(hook.url).send(BODY, waits)
        assert len(hook.posts) == 3
    assert waits.pauses_s == list(PAUSES_S)


@pytest.mark.parametrize("code", [400, 403, 404, 302, 307])
def test_a_refusal_or_a_redirect_is_final(code: int) -> None:
    with hook_server() as hook:
        hook.answers = [code]
        with pytest.raises(NotDelivered, match=f"it answered {code}"):
            Webhook(hook.url).send(BODY, Waits())
        assert len(hook.posts) == 1


def test_one_that_hangs_is_left_after_a_while() -> None:
    with hook_server() as hook:
        hook.hangs = True
        with pytest.raises(NotDelivered, match=r"no answer for 0\.05 s"):
            Webhook(hook.url, timeout_s=0.05).send(BODY, Waits())
        assert len(hook.posts) == 3


def test_one_that_is_not_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/SECRET"
        with pytest.raises(NotDelivered, match="cannot be reached") as failed:
            Webhook(url).send(BODY, Waits())
    assert "SECRET" not in str(failed.value)


def test_at_the_end_of_a_run_nothing_is_tried_again() -> None:
    with hook_server() as hook:
        hook.answers = [500] * 3
        with pytest.raises(NotDelivered):
            Webhook(hook.url).send(BODY, Waits(closing=True))
        assert len(hook.posts) == 1


def test_what_is_shown_has_no_secret() -> None:
    hook = Webhook("https://ops:SECRET@hooks.example.com:8443/services/SECRET?token=SECRET")
    assert hook.shown == "the webhook at https://hooks.example.com:8443"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://SECRET/a", "begins with ftp://"),
        ("file:///SECRET", "begins with file://"),
        ("https:///SECRET", "with a host"),
        ("https://SECRET:99999/a", "a port from 1 to 65535"),
        ("https://SECRET:http/a", "a port from 1 to 65535"),
        ("https://example.com/SECRET a", "without spaces"),
        ("https://example.com/SECRET\n", "without spaces"),
        ("https://[SECRET/a", "this is no web address"),
    ],
)
def test_what_is_no_web_address_is_refused_without_its_secret(url: str, said: str) -> None:
    with pytest.raises(AskedWrongly, match=said) as refused:
        Webhook(url)
    assert "SECRET" not in str(refused.value)
