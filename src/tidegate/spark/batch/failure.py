"""Errors of the user's functions, reported with operator, line and message."""

import json
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidegate.errors import TidegateError

_PACKAGE = Path(__file__).resolve().parents[2]
_MARK = "tidegate-failure:"
_PATTERN = re.compile(re.escape(_MARK) + r"(\{.*?\})" + re.escape(":end"), re.DOTALL)


class OperatorFailed(TidegateError):
    """A batch failed in an operator; the next start repeats it."""


@contextmanager
def told_of(operator: str) -> Iterator[None]:
    """Run the user's function; what it raises is reported with the operator and the user's line."""
    try:
        yield
    except TidegateError as error:
        raise OperatorFailed(_marked(str(error))) from error
    except Exception as error:
        line = _users_line(error)
        message = (
            f"operator '{operator}' raised {type(error).__name__}: {error}{line}; the batch was "
            "not committed and is repeated at the next start"
        )
        raise OperatorFailed(_marked(message)) from error


def _marked(message: str) -> str:
    return f"{_MARK}{json.dumps({'message': message})}:end"


def _users_line(error: Exception) -> str:
    """The deepest frame of the traceback that is neither ours nor a library's."""
    frames = traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        path = Path(frame.filename)
        ours = path.is_relative_to(_PACKAGE)
        library = "site-packages" in path.parts or not path.is_absolute()
        if not ours and not library:
            return f" ({frame.filename}, line {frame.lineno}: {frame.line})"
    return ""


def plain_message(text: str) -> str | None:
    """The message that `told_of` marked, found in all that Spark wrapped around it."""
    found = _PATTERN.search(text)
    if found is None:
        return None
    message: str = json.loads(found.group(1))["message"]
    return message
