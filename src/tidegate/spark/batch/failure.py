"""Errors of the user's functions and of Spark, each reported in one sentence."""

import json
import re
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tidegate.errors import TidegateError
from tidegate.spark.kafka.failures import kafka_sentence

_PACKAGE = Path(__file__).resolve().parents[2]
_LIBRARY = Path(sysconfig.get_path("stdlib")).resolve()
_MARK = "tidegate-failure:"
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(\S.*)")
_LOST_TASK = re.compile(r"^Job aborted due to stage failure: .*? Lost task .*?\): ", re.MULTILINE)
_PATTERN = re.compile(re.escape(_MARK) + r"(\{.*?\})" + re.escape(":end"), re.DOTALL)


class OperatorFailed(TidegateError):
    """A batch failed in an operator; the next start repeats it."""


class RunFailed(TidegateError):
    """A pipeline ended because something in it failed; the next start repeats the batch."""

    def __init__(self, pipeline: str, message: str, original: BaseException | None = None) -> None:
        super().__init__(f"pipeline '{pipeline}' failed: {message}")
        self.pipeline, self.message = pipeline, message
        self.original = original
        """The error that Python or Spark raised first."""

    def again(self) -> "RunFailed":
        """A copy to raise, so that tracebacks of different callers do not pile up in one object.

        Its message says it all if the failure is one that Tidegate knows. Any other original error
        is attached as the cause, with its traceback.
        """
        copy = RunFailed(self.pipeline, self.message, self.original)
        known = self.original is None or isinstance(self.original, TidegateError)
        copy.__cause__ = None if known else self.original
        return copy


@contextmanager
def told_of(operator: str) -> Iterator[None]:
    """Run the user's function; what it raises is reported with the operator and the user's line."""
    try:
        yield
    except TidegateError as error:
        raise OperatorFailed(_marked(str(error))) from error
    except Exception as error:
        message = (
            f"operator '{operator}' raised {type(error).__name__}: {error}{_users_line(error)}; the"
            " batch was "
            "not committed and is repeated at the next start"
        )
        raise OperatorFailed(_marked(message)) from error


def _marked(message: str) -> str:
    return f"{_MARK}{json.dumps({'message': message})}:end"


def _users_line(error: BaseException) -> str:
    """The deepest frame of the traceback that is neither ours nor a library's."""
    frames = traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        path = Path(frame.filename)
        ours = path.is_relative_to(_PACKAGE)
        library = "site-packages" in path.parts or path.is_relative_to(_LIBRARY)
        if path.is_absolute() and not ours and not library:
            return f" ({frame.filename}, line {frame.lineno}: {frame.line})"
    return ""


def plain_message(text: str) -> str | None:
    """The message that `told_of` marked, found in all that Spark wrapped around it."""
    found = _PATTERN.search(text)
    if found is None:
        return None
    message: str = json.loads(found.group(1))["message"]
    return message


def failure_of(
    segment: str, failure: BaseException | None, error: BaseException | None
) -> tuple[str, BaseException] | None:
    """Why a segment ended, in one sentence, and the original error; None if it did not fail.

    `failure` is what its micro-batch raised in Python, `error` is what Spark says of its query.
    """
    original = failure or error
    if original is None:
        return None
    message = plain_message(f"{failure} {error}")
    if message is not None:
        return message, OperatorFailed(message)
    if isinstance(original, TidegateError):
        return str(original), original
    repeats = "the batch repeats at the next start"
    if "No space left on device" in str(original):
        return (
            f"segment '{segment}' failed: a disk is full, most likely that of the checkpoint "
            f"({one_line(original)}); make room and start again: {repeats}",
            original,
        )
    said = kafka_sentence(f"{failure} {error}") or one_line(original)
    return f"segment '{segment}' failed: {said}; {repeats}", original


def foreign_failure(error: BaseException) -> str:
    """Why a query that is not ours failed, in one sentence."""
    return kafka_sentence(str(error)) or one_line(error)


def one_line(error: BaseException) -> str:
    """The type and the message of an error, without stack traces: `ValueError: no such column`.

    For an error of the user's code the line follows. For an error of Java's it is the error that
    Spark reports, and the one that caused it.
    """
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if java is None:
        return f"{type(error).__name__}: {_first_line(str(error))}{_users_line(error)}"
    said = _first_line(str(error))
    with suppress(Exception):  # Java may be gone by now; what was said is then all there is
        said, cause = _java_lines(java)
        said += "" if cause in said else f" (caused by {cause})"
    return f"{type(error).__name__}: {said}{_users_line(error)}"


def _java_lines(java: Any) -> tuple[str, str]:
    """The messages of a Java error and of the error at its root."""
    root = java
    for _ in range(20):
        cause = root.getCause()
        if cause is None:
            break
        root = cause
    said = java.getMessage() or java.toString()
    return _first_line(str(said)), _first_line(str(root.getMessage() or root.toString()))


def _first_line(text: str) -> str:
    """What an error says, without what Spark puts around it: the first line that says something.

    If it quotes a Python traceback, that is the line after it, with the type and the message.
    """
    text = text.partition("terminated with exception: ")[2] or text
    if (quoted := _TRACEBACK.search(text)) is not None:
        text = quoted.group(1)
    text = _LOST_TASK.sub("", text)
    return next((line.strip() for line in text.splitlines() if line.strip()), "no message")
