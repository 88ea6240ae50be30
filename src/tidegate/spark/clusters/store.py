"""A store that speaks S3's protocol, as a child process: moto, for tests and benchmarks.

Objects are in the memory of that process. It accepts any keys, and honours the conditions of puts.
"""

import importlib.util
import socket
import sys
import time
import urllib.request
import uuid
from pathlib import Path
from typing import Self

from tidegate.errors import TidegateError
from tidegate.spark.child import GuardedChild
from tidegate.spark.clusters.hadoop import HOST
from tidegate.spark.s3.address import Address
from tidegate.spark.s3.client import ask

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
_NEEDED = ("moto", "flask", "flask_cors")
_READY_S = 120.0


class Store:
    """A store from its creation until `close`: `with Store(log) as store: store.environment`."""

    def __init__(self, log: Path, host: str = HOST) -> None:
        """It listens at an address that all hosts reach which are to use it."""
        if missing := [name for name in _NEEDED if importlib.util.find_spec(name) is None]:
            raise TidegateError(
                f"the store for S3 needs the package {missing[0]}; install what tests need, with: "
                "pip install 'moto[s3]' flask flask-cors"
            )
        with socket.create_server((host, 0)) as held:
            port = held.getsockname()[1]
        self.url = f"http://{host}:{port}"
        command = [sys.executable, "-m", "moto.server", "-H", host, "-p", str(port)]
        self._child = GuardedChild(command, log)
        until_s = time.monotonic() + _READY_S
        while not self._answers():
            if self._child.process.poll() is not None or time.monotonic() > until_s:
                self.close()
                raise TidegateError(f"the store did not start: {log.read_text()[-1500:]}")
            time.sleep(0.1)

    @property
    def environment(self) -> dict[str, str]:
        """What a program needs to find it."""
        return {**KEYS, "AWS_ENDPOINT_URL": self.url}

    def close(self) -> None:
        """End it; its objects are gone."""
        self._child.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/moto-api/data.json", timeout=5):
                return True
        except OSError:
            return False


def new_bucket() -> str:
    """Make a bucket in the store that the environment names; returns its name."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    ask(Address.of(f"s3://{name}"), "making a bucket", "create_bucket")
    return name
