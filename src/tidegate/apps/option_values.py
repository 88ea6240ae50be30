"""Reads the options of an application from texts, by the fields of a dataclass."""

from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any, ClassVar, Protocol, TypeVar

from tidegate.errors import AskedWrongly, nearest


class HasFields(Protocol):
    """A dataclass, whose fields are the options."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


Options = TypeVar("Options", bound=HasFields)


def options_of(kind: type[Options], application: str, extra: Mapping[str, str]) -> Options:
    """The options that the texts give; all others have their defaults."""
    known = {one.name: one.type for one in fields(kind)}
    given: dict[str, Any] = {}
    for name, text in extra.items():
        if name not in known:
            raise AskedWrongly(f"'{application}' has no option '{name}'{nearest(name, known)}")
        given[name] = _value(name, text, known[name])
    return kind(**given)


def check_range(name: str, value: float, least: float, most: float) -> None:
    """Refuse a value outside of its range."""
    if not least <= value <= most:
        raise AskedWrongly(f"{name}={value:.12g}: give {least:.12g} to {most:.12g}")


def _value(name: str, text: str, kind: Any) -> int | float | bool | str:
    if kind is bool:
        if text not in ("yes", "no"):
            raise AskedWrongly(f"{name}={text}: give yes or no")
        return text == "yes"
    try:
        value: int | float | str = kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise AskedWrongly(f"{name}={text}: expected {what}") from None
    return value
