"""The loggers of Tidegate. Their names begin with `tidegate`, and each line names its pipeline.

As a library should, Tidegate prints nothing unless the application sets up `logging`
(docs/operations.md).
"""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

ROOT = "tidegate"
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class PipelineLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger whose lines begin with the name of a pipeline."""

    def __init__(self, part: str, pipeline: str) -> None:
        super().__init__(logging.getLogger(f"{ROOT}.{part}"), {"pipeline": pipeline})
        self._pipeline = pipeline

    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        """The message with the pipeline's name, which is also the attribute `pipeline`.

        A percent sign in the name must not look like a place for an argument.
        """
        kwargs["extra"] = {**(self.extra or {}), **kwargs.get("extra", {})}
        return f"{self._pipeline.replace('%', '%%')}: {msg}", kwargs


def reason(error: BaseException) -> str:
    """An error in one line: its kind, and the first line of its message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kind = type(error).__name__
    return f"{kind}: {lines[0][:300]}" if lines else kind


def log_to_stderr() -> None:
    """Print Tidegate's log to standard error, for `tidegate --verbose`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(_FORMAT))
    logger = logging.getLogger(ROOT)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
