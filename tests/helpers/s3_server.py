"""A store that speaks S3's protocol, for tests: moto, in this process or as a child.

    python -m tests.helpers.s3_server PORT

Objects are in the memory of the process that serves them.
"""

import json
import logging
import os
import socket
import sys
import threading
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.helpers.processes import wait_for
from tidegate.spark.child import GuardedChild
from tidegate.spark.s3.address import Address
from tidegate.spark.s3.client import ask

HOST = "127.0.0.1"
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
"""What moto accepts as long as nobody asks it to check permissions."""


class LocalStore:
    """A store in a thread of this process."""

    def __init__(self, around: Callable[[Any], Any] = lambda application: application) -> None:
        """`around` may put something between the clients and the store."""
        from moto.server import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        application = around(DomainDispatcherApplication(create_backend_app))
        self._server = make_server(HOST, 0, application, threaded=True)
        self.url = f"http://{HOST}:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def check_permissions(self, after: int | None) -> None:
        """From now on (or, with None, no longer) refuse what the keys' policies do not allow."""
        count = "inf" if after is None else str(after)
        plain = {"Content-Type": "text/plain"}
        request = urllib.request.Request(f"{self.url}/moto-api/reset-auth", count.encode(), plain)
        with urllib.request.urlopen(request):
            pass


class StoreProcess:
    """A store in a process of its own, which outlives drivers that are killed."""

    def __init__(self, log: Path) -> None:
        with socket.create_server((HOST, 0)) as held:
            port = held.getsockname()[1]
        self.url = f"http://{HOST}:{port}"
        command = [sys.executable, "-m", "tests.helpers.s3_server", str(port)]
        self._child = GuardedChild(command, log)
        assert wait_for(self._answers, 120, self._child.process), log.read_text()[-2000:]

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/moto-api/data.json", timeout=5):
                return True
        except OSError:
            return False

    @property
    def environment(self) -> dict[str, str]:
        """What a program needs to find the store."""
        return {**KEYS, "AWS_ENDPOINT_URL": self.url}

    def close(self) -> None:
        self._child.kill()


def new_bucket() -> str:
    """Make a bucket in the store that the environment names; returns its name."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    ask(Address.of(f"s3://{name}"), "making a bucket", "create_bucket")
    return name


def user_with(allowed: list[str], bucket: str) -> dict[str, str]:
    """The keys of a new user who may do this much in a bucket."""
    from botocore.session import get_session

    iam = get_session().create_client(
        "iam", endpoint_url=os.environ["AWS_ENDPOINT_URL"], region_name="us-east-1"
    )
    user = f"user-{uuid.uuid4().hex[:8]}"
    iam.create_user(UserName=user)
    resources = [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]
    statement = {"Effect": "Allow", "Action": allowed, "Resource": resources}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_user_policy(UserName=user, PolicyName="some", PolicyDocument=policy)
    made = iam.create_access_key(UserName=user)["AccessKey"]
    return {
        "AWS_ACCESS_KEY_ID": made["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": made["SecretAccessKey"],
    }


if __name__ == "__main__":
    from moto.server import main

    main(["-H", HOST, "-p", sys.argv[1]])
