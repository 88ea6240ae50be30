"""Posts notices as JSON to a web address, such as a chat's incoming webhook.

The address of a webhook is a secret: whoever knows it may post. So no log and no error has more of
it than its scheme and host. A redirect is not followed, because a POST would become a GET without
its content, to an address that nobody gave.
"""

import base64
import json
import re
import urllib.error
import urllib.request
from http import HTTPStatus
from http.client import HTTPMessage
from typing import IO, Any
from urllib.parse import SplitResult, unquote, urlsplit

from tidegate.errors import AskedWrongly
from tidegate.spark.notices.outbox import NotDelivered, Pause

TIMEOUT_S = 5.0
"""How long to wait for a connection, and then for an answer."""
PAUSES_S = (1.0, 5.0)
"""Pauses before the second and the third try."""
_AGAIN = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
"""Refusals that may not be repeated."""
_PORTS = range(1, 1 << 16)
_UNFIT = re.compile(r"[^\x21-\x7e]")


class Webhook:
    """An http or https address that takes JSON."""

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S) -> None:
        parts = checked(url)
        self._timeout_s = timeout_s
        self._url = parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="").geturl()
        self._headers = {"Content-Type": "application/json", "User-Agent": "tidegate"}
        if parts.username is not None:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            coded = base64.b64encode(user.encode()).decode("ascii")
            self._headers["Authorization"] = f"Basic {coded}"
        self._opener = urllib.request.build_opener(_NoRedirect())
        self.shown = f"the webhook at {parts.scheme}://{_place(parts)}"
        """The address for a person, without what is secret in it."""

    def send(self, document: dict[str, Any], wait: Pause) -> None:
        """Post the document; what may succeed later is tried again, after a pause."""
        body = json.dumps(document).encode()
        for pause_s in (*PAUSES_S, None):
            failure = self._post(body)
            if failure is None:
                return
            why, again = failure
            if pause_s is None or not again or wait(pause_s):
                raise NotDelivered(why)

    def _post(self, body: bytes) -> tuple[str, bool] | None:
        """Post once. Returns why it failed, and whether to try again; None if it did not."""
        request = urllib.request.Request(self._url, body, self._headers, method="POST")
        try:
            with self._opener.open(request, timeout=self._timeout_s):
                return None
        except urllib.error.HTTPError as error:
            error.close()
            again = error.code in _AGAIN or error.code >= HTTPStatus.INTERNAL_SERVER_ERROR
            return f"it answered {error.code} {_phrase(error.code)}".rstrip(), again
        except TimeoutError:
            return f"it had no answer for {self._timeout_s:g} s", True
        except urllib.error.URLError as error:
            if isinstance(error.reason, TimeoutError):
                return f"it had no answer for {self._timeout_s:g} s", True
            return f"it cannot be reached ({_kind(error.reason)})", True
        except Exception as error:  # whatever it says may have the address in it
            return f"posting failed ({type(error).__name__})", True


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Leaves a redirect as the answer that it is."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> None:
        return None


def checked(url: str) -> SplitResult:
    """The parts of an address, or why it is none; no more of it is said than its scheme and host.

    An error of Python's own may have the whole address in it, so none is passed on.
    """
    scheme = url.partition("://")[0].lower()
    if scheme not in ("http", "https"):
        raise AskedWrongly(
            f"notify: an address that begins with {scheme[:12]}:// cannot be posted to; give one"
            " that begins with https:// or http://"
        )
    try:
        parts = urlsplit(url)
        fits = bool(parts.hostname) and (parts.port is None or parts.port in _PORTS)
    except ValueError:
        fits = False
    if not fits or _UNFIT.search(url):
        raise AskedWrongly(
            "notify: this is no web address; give one such as https://hooks.example.com/a/b, with a"
            " host, without spaces, and with a port from 1 to 65535 if any"
        )
    return parts


def _place(parts: SplitResult) -> str:
    """Host and port."""
    return parts.netloc.rpartition("@")[2]


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return ""


def _kind(cause: object) -> str:
    """What is behind an error of the network, without the address."""
    text = getattr(cause, "strerror", None) or getattr(cause, "verify_message", None)
    return str(text) if text else type(cause).__name__
