"""The form of a benchmark's result: what was measured, and the aims that it is compared with.

A benchmark is a file `benchmarks/NAME.py` with a docstring (its first line is its description) and
`def run(options: Options) -> Bench`. `tidegate bench NAME` finds and runs it. A benchmark with
several bodies keeps them in a folder beside it, which `tidegate bench list` does not list.
"""

import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.progress import Progress


@dataclass(frozen=True, slots=True)
class Aim:
    """A value that a benchmark aims at, and whether it was met; a ratio or count if possible."""

    name: str
    value: float | None
    """None if it could not be measured."""
    aim: str
    """The aim in words: `">= 50"`, `"< 20 us"`."""
    met: bool


def at_least(name: str, value: float | None, bound: float, unit: str = "") -> Aim:
    """An aim that is met from `bound` upwards; without a value it is missed."""
    met = value is not None and bool(value >= bound)
    return Aim(name, value, f">= {bound:g} {unit}".rstrip(), met)


def at_most(name: str, value: float | None, bound: float, unit: str = "") -> Aim:
    """An aim that is met up to `bound`; without a value it is missed."""
    met = value is not None and bool(value <= bound)
    return Aim(name, value, f"<= {bound:g} {unit}".rstrip(), met)


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller asked of a benchmark."""

    quick: bool = False
    """Run a short form with fewer repetitions; the result has the same form."""
    say: Callable[[str], None] = print
    """Prints a line about what was found so far; never part of the JSON document."""
    progress: Progress = field(default_factory=Progress)
    """Is told how much there is to do and which step begins, for a bar with the time left."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """Further `--key value` options of this benchmark."""


@dataclass(frozen=True, slots=True)
class Bench:
    """The result of a benchmark."""

    bench: str
    results: list[dict[str, Any]]
    aims: list[Aim]
    machine: dict[str, Any] = field(default_factory=lambda: machine())


def machine() -> dict[str, Any]:
    """The kind of machine that the figures were measured on, without its name."""
    return {
        "cores": os.cpu_count(),
        "system": platform.system(),
        "arch": platform.machine(),
        "python": platform.python_version(),
    }
