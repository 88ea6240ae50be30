"""Whether a broker answers, asked of servers that do and do not."""

import socket
import struct
import threading

import pytest

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.kafka.answering import answers, require_broker


@pytest.fixture
def server():
    """A server that answers each connection with what `reply` makes of the request."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve(reply):
        def run():
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    size = struct.unpack(">i", connection.recv(4))[0]
                    connection.sendall(reply(connection.recv(size)))

        threading.Thread(target=run, daemon=True).start()
        return f"127.0.0.1:{listening.getsockname()[1]}"

    yield serve
    listening.close()


def broker(request: bytes) -> bytes:
    api, version, correlation = struct.unpack(">hhi", request[:8])
    assert (api, version) == (18, 0), "the request for API versions, in its first version"
    body = struct.pack(">ihi", correlation, 0, 0)
    return struct.pack(">i", len(body)) + body


def test_a_broker_answers(server):
    place = server(broker)
    assert answers(place)
    assert answers(f"127.0.0.1:1, {place}"), "one of several is enough"
    require_broker(place)


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 400 Bad Request\r\n", b"\0\0\0\1"])
def test_something_else_does_not(server, reply):
    assert not answers(server(lambda request: reply))


def test_nobody_does_not():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(TidegateError, match=f"no Kafka broker answers at {place}; start it"):
        require_broker(place)


@pytest.mark.parametrize("text", ["", "localhost", "localhost:", "a:9092,b", "a:b"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(AskedWrongly, match="is no Kafka address; give HOST:PORT"):
        require_broker(text)


def test_addresses_are_written_as_kafkas_clients_take_them(server):
    place = server(broker)
    assert answers(f"PLAINTEXT://{place}")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert answers(f"[127.0.0.1]:{port}", encrypted=True), "an open port is all that is asked"
    assert not answers(f"127.0.0.1:{port}", encrypted=True)
