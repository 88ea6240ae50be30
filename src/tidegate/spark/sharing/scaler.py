"""Who asks Spark for executors: one scaler per application.

Spark keeps one number of executors per application. Pipelines with a target share a pool that asks
for their sum. An attachment asks for its own queries. Both at once would undo each other's
requests without end, so the second is refused.
"""

import threading
from collections.abc import Callable

from tidegate.errors import AskedWrongly

PIPELINES = "pipelines with a target"
ATTACHMENT = "tg.attach"
_scalers: dict[str, tuple[str, Callable[[], bool]]] = {}
_guard = threading.Lock()


def scale(application: str, kind: str, works: Callable[[], bool]) -> None:
    """Let this kind scale an application; refuse it while the other kind does.

    `works` says whether it still scales.
    """
    with _guard:
        other, still = _scalers.get(application, (kind, works))
        if other != kind and still():
            raise AskedWrongly(
                f"the executors of this Spark application are scaled by {other} already, and "
                f"{kind} would undo that; stop the one before you start the other, run them in "
                "two applications, or give this one dry_run=True"
            )
        _scalers[application] = (kind, works)
