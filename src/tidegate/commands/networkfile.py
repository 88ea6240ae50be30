"""Reads a network from a TOML file, and names the line of an error."""

import math
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from tidegate.errors import AskedWrongly, nearest
from tidegate.models.queueing.network import SOURCE, Edge, Network, Operator
from tidegate.models.queueing.traffic import visit_ratios

KeyPath = tuple[str | int, ...]

_TOP_KEYS = ("rate", "operators", "edges")
_OPERATOR_KEYS = ("service_rate", "arrival_scv", "service_scv")
_EDGE_KEYS = ("from", "to", "ratio")
_HEADER = re.compile(r"\s*(\[\[?)(.+?)\]\]?\s*(?:#.*)?")
_KEY = re.compile(r"\s*([^=#]+?)\s*=")
_MISSING = object()


def read_network(path: Path | str) -> Network:
    """The network in the file; AskedWrongly, with the line where possible, when it is not valid."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise AskedWrongly(
            f"there is no file '{path}'; give the path of a network file (examples/vld.toml is one)"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise AskedWrongly(f"'{path}' cannot be read: {reason}; give a TOML file") from None
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise AskedWrongly(f"{path} is not valid TOML: {error}; correct it there") from None
    return _Reader(str(path), document, _lines(text)).network()


def _lines(text: str) -> dict[KeyPath, int]:
    """The line on which each table and key of a TOML text begins.

    tomllib keeps no positions, so this scans headers and keys. A key of an inline table has the
    line of the key that holds the table.
    """
    lines: dict[KeyPath, int] = {}
    arrays: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.fullmatch(line):
            table = _dotted(header[2])
            if header[1] == "[[":
                index = arrays[table] = arrays.get(table, -1) + 1
                table = (*table, index)
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            names = _dotted(key[1])
            for length in range(1, len(names) + 1):
                lines.setdefault((*table, *names[:length]), number)
    return lines


def _dotted(key: str) -> KeyPath:
    """The parts of a dotted key, quoted or not; empty when it is not a key."""
    try:
        value: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    parts: list[str | int] = []
    while isinstance(value, dict):
        ((part, value),) = value.items()
        parts.append(part)
    return tuple(parts)


class _Reader:
    """Turns a parsed document into a Network, or refuses it with a line number."""

    def __init__(
        self, file: str, document: Mapping[str, Any], lines: Mapping[KeyPath, int]
    ) -> None:
        self._file = file
        self._document = document
        self._lines = lines

    def network(self) -> Network:
        self._known_keys((), self._document, _TOP_KEYS, "a network")
        rate = self._number(("rate",), "rate", "external tuples per second", above_zero=True)
        network = Network(rate=rate, operators=self._operators(), edges=self._edges())
        self._refuse_unreached(network)
        try:
            visit_ratios(network)
        except AskedWrongly as error:
            raise AskedWrongly(f"{self._file}: {error}") from None
        return network

    def _operators(self) -> tuple[Operator, ...]:
        tables = self._document.get("operators")
        if not isinstance(tables, dict) or not tables:
            self._refuse(("operators",), "there is no operator; add a table [operators.NAME]")
        operators = []
        for name, table in tables.items():
            path = ("operators", name)
            if name == SOURCE:
                self._refuse(
                    path, f"'{SOURCE}' is the outside world; give the operator another name"
                )
            if not isinstance(table, dict):
                self._refuse(path, f"operator '{name}' must be a table [operators.{name}]")
            what = f"operator '{name}'"
            self._known_keys(path, table, _OPERATOR_KEYS, what)
            operators.append(
                Operator(
                    name=name,
                    service_rate=self._number(
                        (*path, "service_rate"),
                        f"service_rate of {what}",
                        "tuples that one core completes per second",
                        above_zero=True,
                    ),
                    arrival_scv=self._scv(path, "arrival_scv", what),
                    service_scv=self._scv(path, "service_scv", what),
                )
            )
        return tuple(operators)

    def _scv(self, path: KeyPath, key: str, what: str) -> float:
        meaning = "a squared coefficient of variation"
        return self._number((*path, key), f"{key} of {what}", meaning, default=1.0)

    def _edges(self) -> tuple[Edge, ...]:
        tables = self._document.get("edges", [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self._refuse(("edges",), "edges must be tables [[edges]] with from, to and ratio")
        known = self._document["operators"]
        edges = []
        for index, table in enumerate(tables):
            path = ("edges", index)
            self._known_keys(path, table, _EDGE_KEYS, "an edge")
            origin = self._end(path, "from", (*known, SOURCE))
            target = self._end(path, "to", known)
            ratio = self._number(
                (*path, "ratio"),
                f"ratio of the edge from '{origin}' to '{target}'",
                "tuples emitted along the edge per tuple processed",
                default=1.0,
            )
            edges.append(Edge(origin=origin, target=target, ratio=ratio))
        return tuple(edges)

    def _end(self, path: KeyPath, key: str, known: Any) -> str:
        name = self._value((*path, key))
        if name is _MISSING:
            self._refuse(path, f"the edge has no '{key}'; name the operator")
        if not isinstance(name, str):
            self._refuse((*path, key), f"'{key}' of an edge must be an operator's name in quotes")
        if name == SOURCE and key == "to":
            self._refuse((*path, key), f"no edge can lead to '{SOURCE}'; name an operator")
        if name not in known:
            self._refuse(
                (*path, key), f"an edge names an unknown operator '{name}'{nearest(name, known)}"
            )
        return name

    def _refuse_unreached(self, network: Network) -> None:
        """Refuse operators that no tuple reaches: without a rate, no allocation makes sense."""
        reached = {SOURCE}
        grown = True
        while grown:
            new = {e.target for e in network.edges if e.ratio > 0 and e.origin in reached} - reached
            reached |= new
            grown = bool(new)
        for name in network.names:
            if name not in reached:
                self._refuse(
                    ("operators", name),
                    f"no tuple reaches operator '{name}'; add an edge to it from '{SOURCE}' or from"
                    " an operator that is reached, or remove it",
                )

    def _known_keys(
        self, path: KeyPath, table: Mapping[str, Any], known: tuple[str, ...], what: str
    ) -> None:
        for key in table:
            if key not in known:
                self._refuse((*path, key), f"{what} has no key '{key}'{nearest(key, known)}")

    def _number(
        self,
        path: KeyPath,
        what: str,
        meaning: str,
        *,
        above_zero: bool = False,
        default: float | None = None,
    ) -> float:
        """A finite number, either above zero or of zero or more."""
        bound = "above zero" if above_zero else "of zero or more"
        value = self._value(path)
        if value is _MISSING:
            if default is None:
                self._refuse(path, f"{what} is missing; write a number {bound}: {meaning}")
            return default
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value < 0 or (above_zero and value == 0):
            shown = repr(value) if isinstance(value, str) else str(value)
            self._refuse(path, f"{what} is {shown}, but must be a number {bound}: {meaning}")
        return float(value)

    def _value(self, path: KeyPath) -> Any:
        value: Any = self._document
        for part in path:
            if isinstance(value, dict) and part not in value:
                return _MISSING
            value = value[part]
        return value

    def _refuse(self, path: KeyPath, reason: str) -> NoReturn:
        """An error that names the line of the key, or of the table it belongs to."""
        for length in range(len(path), 0, -1):
            if line := self._lines.get(path[:length]):
                raise AskedWrongly(f"{self._file}, line {line}: {reason}")
        raise AskedWrongly(f"{self._file}: {reason}")
