"""The child process behind `ProducerProcess`: `python -m tidegate.spark.kafka.producing`.

The first line of its input says what to produce. It prints a line of JSON when it begins, and one
with what it produced when it ends. When its input is closed, it stops.
"""

import json
import sys
import threading
from typing import Any

from tidegate.errors import TidegateError
from tidegate.spark.kafka.produce import produce
from tidegate.spark.kafka.topic_load import TopicLoad


def main() -> int:
    """Produce what the input says."""
    asked = json.loads(sys.stdin.readline())
    stop = threading.Event()
    threading.Thread(target=_await_end, args=(stop,), daemon=True).start()
    try:
        produced = produce(
            asked["servers"],
            asked["topic"],
            TopicLoad.of_document(asked["load"]),
            start_ms=asked["start_ms"],
            stop=stop,
            patience_s=asked["patience_s"],
            on_begin=lambda ms: _tell({"begun_ms": ms}),
        )
    except TidegateError as error:
        _tell({"error": str(error)})
        return 1
    _tell({"produced": produced.document()})
    return 0


def _await_end(stop: threading.Event) -> None:
    """Wait until the input is closed."""
    sys.stdin.read()
    stop.set()


def _tell(document: dict[str, Any]) -> None:
    print(json.dumps(document), flush=True)


if __name__ == "__main__":
    sys.exit(main())
