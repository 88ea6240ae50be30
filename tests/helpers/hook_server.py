"""A web server on the loopback that takes notices, as a chat would, and can misbehave."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATIENCE_S = 30.0


@dataclass
class Hook:
    """What a server was sent; `answers` has the codes of its next answers, then it is 200."""

    answers: list[int] = field(default_factory=list)
    hangs: bool = False
    """Whether it leaves every request without an answer, until it is closed."""
    posts: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    port: int = 0
    closed: threading.Event = field(default_factory=threading.Event)
    changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/services/T0/SECRET?key=ALSO"

    def until(self, condition: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, PATIENCE_S)


@contextmanager
def hook_server() -> Iterator[Hook]:
    hook = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with hook.changed:
                hook.posts.append(json.loads(body))
                hook.headers.append(dict(self.headers))
                hook.paths.append(self.path)
                hook.changed.notify_all()
                code = hook.answers.pop(0) if hook.answers else 200
            if hook.hangs:
                hook.closed.wait(PATIENCE_S)
                return
            self.send_response(code)
            if 300 <= code < 400:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            raise AssertionError("a notice was turned into a GET")

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hook.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hook
    finally:
        hook.closed.set()
        server.shutdown()
        thread.join()
        server.server_close()
