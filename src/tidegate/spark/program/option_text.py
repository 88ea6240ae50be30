"""An option's value as a person writes it, on the command line or in a file: `1:20`, `95`, `5s`."""

from typing import Any

from tidegate.control.bounds import parse_span
from tidegate.errors import AskedWrongly
from tidegate.spark.options import Count, Declared


def option_value(option: Declared, written: Any) -> Any:
    """The value for a call, from text or from a value of a TOML file.

    Text stands for numbers, too, because a command line has nothing else. What does not fit is left
    as it is: whoever takes the options refuses it and says what was expected.
    """
    if option.type == Count:
        return _count(option.name, written)
    if option.type == int | None and isinstance(written, str):
        if not written.strip().isdecimal():
            raise AskedWrongly(f"{option.name} {written}: expected a whole number. {option.help}")
        return int(written)
    if option.several and isinstance(written, str):
        return (written,)
    return tuple(written) if isinstance(written, list) else written


def _count(name: str, written: Any) -> Any:
    """`1:20`, `[1, 20]` or `4`."""
    if isinstance(written, str):
        return parse_span(name, written)
    if isinstance(written, list | tuple):
        if len(written) != 2 or not all(type(one) is int for one in written):
            raise AskedWrongly(f"{name} = {written}: write [FEWEST, MOST], such as [1, 20]")
        return tuple(written)
    return written
