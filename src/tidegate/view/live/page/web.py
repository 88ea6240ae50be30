"""The addresses of a page: Bokeh's documents and scripts, and the metrics beside them."""

import logging
from typing import TYPE_CHECKING, Any

from bokeh.application import Application
from bokeh.application.handlers.function import FunctionHandler
from bokeh.core.validation import silence
from bokeh.core.validation.warnings import MISSING_RENDERERS
from bokeh.server.auth_provider import NullAuth
from bokeh.server.tornado import BokehTornado
from tornado.web import RequestHandler

from tidegate.view.live.page.access import TokenAccess, knows
from tidegate.view.live.page.document import PageSession

if TYPE_CHECKING:
    from tidegate.view.live.page.server import Page

_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1", "[::1]")


class MetricsHandler(RequestHandler):
    """`/metrics`, for Prometheus."""

    def initialize(self, page: "Page") -> None:
        """Tornado makes a handler for each request."""
        self._page = page

    def get(self) -> None:
        """The exposition in the format that is accepted."""
        # Another site could give its name the address of loopback and read from a browser here.
        foreign = self._page.address.loopback and self.request.host_name not in _LOCAL_NAMES
        if foreign or not knows(self, self._page.token):
            self.set_status(403)
            self.finish("forbidden")
            return
        text, content_type = self._page.metrics(self.request.headers.get("Accept", ""))
        self.set_header("Content-Type", content_type)
        self.finish(text)


def web_application(page: "Page") -> Any:
    """Tornado's application, with its documents made anew for each browser."""

    def visited(document: Any) -> None:
        arguments = document.session_context.request.arguments
        pipeline, plot = (
            arguments.get(name, [b""])[0].decode(errors="replace") for name in ("pipeline", "plot")
        )
        PageSession(document, page.feeds, pipeline, plot)

    silence(MISSING_RENDERERS)  # charts of operators begin empty
    # A tab that is closed is no concern of the driver's log.
    logging.getLogger("bokeh.server.views.ws").setLevel(logging.ERROR)
    origins = [f"{name}:*" for name in _LOCAL_NAMES] if page.address.loopback else ["*"]
    application = BokehTornado(
        {"/": Application(FunctionHandler(visited))},
        extra_websocket_origins=origins,
        extra_patterns=[("/metrics", MetricsHandler, {"page": page})],
        use_index=False,
        auth_provider=NullAuth() if page.token is None else TokenAccess(page.token),
        # A document knows no headers and cookies of its visitor, so no page repeats a token.
        include_headers=["Host"],
        include_cookies=["none"],
    )
    application.settings["log_function"] = _say_nothing
    return application


def _say_nothing(handler: RequestHandler) -> None:
    """A driver's log is no place for every request of a browser."""
