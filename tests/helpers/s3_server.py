"""A store that speaks S3's protocol in a thread of this process, for tests: moto.

`tidegate.spark.clusters.store` has the same as a child process.
"""

import json
import logging
import os
import threading
import urllib.request
import uuid
from collections.abc import Callable
from typing import Any

from tidegate.spark.clusters.hadoop import HOST


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
