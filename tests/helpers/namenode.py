"""An imitated NameNode and DataNode behind WebHDFS, in memory, with the faults that tests want."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit


class NameNode:
    """What it holds, and what it does wrong."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.lost_answers = 0
        """So many requests are done, and then the connection is closed without an answer."""
        self.refusal: tuple[int, str, str] | None = None
        """The status, exception and message that every request to the NameNode gets."""
        self.datanodes: list[str] = []
        """Where readers and writers are sent, the first one that they do not exclude."""
        self.asked: list[str] = []
        """The operations that were asked for, in order."""
        self.watch: Callable[[str], None] = lambda operation: None
        """Is told of each of them, before it is done."""
        self.sent_bytes = 0
        """The bytes of files that were read from it."""
        self.port = 0

    @property
    def url(self) -> str:
        """Its web server."""
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def namenode() -> Iterator[NameNode]:
    """An imitated NameNode that answers until the end of the block."""
    node = NameNode()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(node))
    server.daemon_threads = True
    node.port = server.server_address[1]
    node.datanodes = [f"127.0.0.1:{node.port}"]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield node
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(node: NameNode) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._serve()

        def do_PUT(self) -> None:
            self._serve()

        def do_DELETE(self) -> None:
            self._serve()

        def log_message(self, *told: object) -> None:
            return

        def _serve(self) -> None:
            parts = urlsplit(self.path)
            given = {name: values[0] for name, values in parse_qs(parts.query).items()}
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            at_datanode = "at" in given
            if node.refusal is not None and not at_datanode:
                self._refuse(*node.refusal)
                return
            node.asked.append(given["op"])
            node.watch(given["op"])
            path = unquote(parts.path.removeprefix("/webhdfs/v1"))
            answer = self._done(path, given, body, at_datanode)
            if node.lost_answers and not at_datanode:
                node.lost_answers -= 1
                self.close_connection = True
                return
            self._answer(*answer)

        def _done(
            self, path: str, given: dict[str, str], body: bytes, at_datanode: bool
        ) -> tuple[int, object, str | None]:
            operation = given["op"]
            if operation in ("CREATE", "OPEN") and not at_datanode:
                if operation == "OPEN" and path not in node.files:
                    return self._missing(path)
                without = given.get("excludedatanodes", "").split(",")
                place = next((one for one in node.datanodes if one not in without), None)
                if place is None:
                    told = {"exception": "IOException", "message": "No active nodes contain it"}
                    return 403, {"RemoteException": told}, None
                return 307, {}, f"http://{place}{self.path}&at=datanode"
            if operation == "CREATE":
                node.files[path] = body
                return 201, b"", None
            if operation == "OPEN":
                begin = int(given["offset"])
                length = int(given.get("length", len(node.files[path])))
                node.sent_bytes += len(node.files[path][begin : begin + length])
                return 200, node.files[path][begin : begin + length], None
            if operation == "RENAME":
                return self._renamed(path, given)
            if operation == "DELETE":
                return 200, {"boolean": node.files.pop(path, None) is not None}, None
            if operation == "GETFILESTATUS":
                if path not in node.files:
                    return self._missing(path)
                return 200, {"FileStatus": _status(node, path)}, None
            return 200, {"boolean": True}, None

        def _renamed(self, path: str, given: dict[str, str]) -> tuple[int, object, str | None]:
            target, onto = given["destination"], given.get("renameoptions") == "OVERWRITE"
            if path not in node.files:
                return self._missing(path) if onto else (200, {"boolean": False}, None)
            if target in node.files and not onto:
                return 200, {"boolean": False}, None
            node.files[target] = node.files.pop(path)
            return 200, b"" if onto else {"boolean": True}, None

        def _missing(self, path: str) -> tuple[int, object, str | None]:
            told = {"exception": "FileNotFoundException", "message": f"File does not exist: {path}"}
            return 404, {"RemoteException": told}, None

        def _refuse(self, status: int, exception: str, message: str) -> None:
            told = {"RemoteException": {"exception": exception, "message": message}}
            self._answer(status, told if exception else b"<html>", None)

        def _answer(self, status: int, content: object, location: str | None) -> None:
            sent = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(sent)))
            if location is not None:
                self.send_header("Location", location)
            self.end_headers()
            self.wfile.write(sent)

    return Handler


def _status(node: NameNode, path: str) -> dict[str, object]:
    length = len(node.files[path])
    return {"pathSuffix": "", "type": "FILE", "length": length, "modificationTime": 1000}
