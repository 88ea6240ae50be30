"""Who may see a page that is not on loopback: whoever knows its token.

The token comes in the address once, and then in a cookie; Prometheus sends it as a bearer token.
"""

import hmac
from collections.abc import Callable
from typing import Any

from bokeh.server.auth_provider import AuthProvider
from tornado.web import RequestHandler
from tornado.websocket import WebSocketHandler

_COOKIE = "tidegate-token"
_REFUSED = "This page needs its token: add ?token=... to the address, or send it as a bearer token."


def knows(handler: RequestHandler, token: str | None) -> bool:
    """Whether a request brings the token; it is remembered in a cookie of the browser."""
    if token is None:
        return True
    given = handler.get_query_argument("token", "")
    bearer = handler.request.headers.get("Authorization", "").removeprefix("Bearer ")
    for secret in (given, bearer, handler.get_cookie(_COOKIE) or ""):
        if secret and hmac.compare_digest(secret.encode(), token.encode()):
            if secret == given and not isinstance(handler, WebSocketHandler):
                handler.set_cookie(_COOKIE, token, httponly=True, samesite="Strict")
            return True
    return False


class Refusal(RequestHandler):
    """Where visitors without the token are sent."""

    def get(self) -> None:
        """Say what is missing."""
        self.set_status(403)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(_REFUSED)


class TokenAccess(AuthProvider):
    """Bokeh's way to ask for a token, on its pages and websockets."""

    def __init__(self, token: str) -> None:
        self._token = token
        super().__init__()

    @property
    def get_user(self) -> Callable[[Any], Any]:
        """A visitor who knows the token."""
        return lambda handler: "visitor" if knows(handler, self._token) else None

    @property
    def login_url(self) -> str:
        """Where others are sent."""
        return "/refused"

    @property
    def login_handler(self) -> type[RequestHandler]:
        """What tells them."""
        return Refusal
