"""Serves the page and the metrics, in a thread of its own.

Nothing here can change a pipeline, and nothing that fails here reaches one: a control loop only
hands its records over. All scripts come from this server, so no request leaves the machine.
"""

import asyncio
import logging
import socket
import threading
from typing import Any
from urllib.parse import quote

from tidegate.errors import TidegateError
from tidegate.view.live.metrics import Exposition
from tidegate.view.live.page.address import PageAddress
from tidegate.view.live.page.feed import Feed

log = logging.getLogger("tidegate.page")

_START_S = 30.0
"""How long a start waits for the server: Bokeh takes a second or two to import."""
_STOP_S = 5.0


class Page:
    """A page with any number of pipelines. It listens from the start; `close` ends it."""

    def __init__(self, address: PageAddress) -> None:
        self._socket: socket.socket = address.bound()
        self.address = PageAddress(address.host, int(self._socket.getsockname()[1]))
        self.token = address.token()
        self._feeds: list[Feed] = []
        self._exposition = Exposition(
            lambda: [seen for feed in self.feeds if (seen := feed.watched()) is not None]
        )
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="tidegate-page", daemon=True)
        self._thread.start()
        self._ready.wait(_START_S)
        if self._failure is not None:
            raise TidegateError(f"the page could not be served: {self._failure}")

    @property
    def url(self) -> str:
        """The address for a browser, with the token if there is one."""
        host = "127.0.0.1" if self.address.host in ("0.0.0.0", "::") else self.address.host
        host = f"[{host}]" if ":" in host else host
        token = "" if self.token is None else f"?token={quote(self.token)}"
        return f"http://{host}:{self.address.port}/{token}"

    @property
    def feeds(self) -> list[Feed]:
        """The pipelines on the page."""
        return list(self._feeds)

    def add(self, name: str) -> Feed:
        """Put a pipeline on the page; a second one of the same name gets a number."""
        taken = {feed.name for feed in self._feeds}
        free, number = name, 2
        while free in taken:
            free, number = f"{name} ({number})", number + 1
        feed = Feed(free)
        self._feeds = [*self._feeds, feed]
        return feed

    def remove(self, feed: Feed) -> None:
        """Take a pipeline off the page."""
        self._feeds = [one for one in self._feeds if one is not feed]

    def metrics(self, accept: str) -> tuple[bytes, str]:
        """What Prometheus reads, and its format."""
        return self._exposition.text(accept)

    def close(self) -> None:
        """Stop serving and free the port."""
        loop, end = self._loop, self._end
        if loop is not None and end is not None and self._thread.is_alive():
            loop.call_soon_threadsafe(end.set)
            self._thread.join(_STOP_S)
        self._socket.close()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # nobody else would hear of it
            self._failure = error
            log.warning("the page ended: %s", error)
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        # Imported here because Bokeh's server takes a second to import, in this thread.
        from tornado.httpserver import HTTPServer

        from tidegate.view.live.page.web import web_application

        application = web_application(self)
        http = HTTPServer(application, xheaders=False)
        http.add_sockets([self._socket])
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        application.initialize(_io_loop())
        application.start()
        self._ready.set()
        try:
            await self._end.wait()
        finally:
            http.stop()
            application.stop()


def _io_loop() -> Any:
    from tornado.ioloop import IOLoop

    return IOLoop.current()
