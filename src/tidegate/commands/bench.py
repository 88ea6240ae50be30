"""`tidegate bench`: runs a benchmark and prints what it measured.

Benchmarks are no part of the library: nothing imports them. They are in the checkout, and a wheel
brings them in a folder of its own, which is put on the import path only when one is run.
"""

import ast
import importlib.util
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

import tidegate
from tidegate.benching import Bench, Options
from tidegate.commands.output import Json, print_json, print_line, print_table, progress
from tidegate.errors import AskedWrongly, TidegateError, nearest

SHIPPED = "shipped"
"""The folder of the installed package that a wheel brings beside the library."""
FREE_OPTIONS = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Allows `--key value` options that only the benchmark knows."""


def bench(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A benchmark; `list` names them all.")] = "list",
    quick: Annotated[
        bool, typer.Option("--quick", help="Run a short version, for a first look.")
    ] = False,
    json: Json = False,
) -> None:
    """Run one of Tidegate's own benchmarks, and say which of its aims were met.

    Without a name it lists them. Other --KEY VALUE options go to the benchmark.
    """
    known = _benchmarks()
    if name == "list":
        _print_list(known, json)
        return
    if name not in known:
        raise AskedWrongly(f"there is no benchmark '{name}'{nearest(name, known)}")
    extra = _pairs(context.args)
    with progress(f"bench {name}") as shown:
        options = Options(quick=quick, say=shown.say, progress=shown.progress, extra=extra)
        answer = _load(known[name])(options)
    if json:
        print_json(asdict(answer))
    else:
        _print_tables(answer)


def _benchmarks() -> dict[str, Path]:
    """The benchmarks of this package's checkout, of its wheel, or in the current directory."""
    package = Path(tidegate.__file__).resolve().parent
    checkout, wheel = package.parents[1], package / SHIPPED
    for root in (checkout, wheel, Path.cwd()):
        files = sorted((root / "benchmarks").glob("[!_]*.py"))
        if files:
            return {file.stem: file for file in files}
    raise TidegateError(
        "this installation has no benchmarks: install a wheel of Tidegate, or run this from a"
        " checkout"
    )


def _load(path: Path) -> Any:
    """The `run` function of a benchmark.

    A benchmark may import helpers from a folder beside it, as `benchmarks.FOLDER`, so the directory
    above goes on the import path. Some compare with other projects, which users need not have.
    """
    checkout = str(path.parents[1])
    if checkout not in sys.path:
        sys.path.insert(0, checkout)
    spec = importlib.util.spec_from_file_location(f"benchmarks.{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in ("tidegate", "benchmarks"):
            raise
        package = error.name.partition(".")[0]
        raise TidegateError(
            f"the benchmark '{path.stem}' needs the package '{package}', which is not installed;"
            " install it, or all that benchmarks compare with by the extra tidegate[dev]"
        ) from error
    return module.run


def _description(path: Path) -> str:
    """The first line of the file's docstring, read without running the file."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n")[0]


def _pairs(words: list[str]) -> dict[str, str]:
    """Parse `--key value` and `--key=value` into a mapping."""
    pairs: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        key, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not key or (not equals and not rest):
            raise AskedWrongly(f"cannot read '{word}'; further options are --KEY VALUE.")
        pairs[key] = value if equals else rest.pop(0)
    return pairs


def _print_list(known: dict[str, Path], json: bool) -> None:
    described = {name: _description(path) for name, path in known.items()}
    if json:
        rows = [{"name": name, "description": text} for name, text in described.items()]
        print_json({"benchmarks": rows})
        return
    table = Table("benchmark", "what it measures", title_justify="left")
    for name, text in described.items():
        table.add_row(name, text)
    print_table(table)


def _print_tables(answer: Bench) -> None:
    columns = list(dict.fromkeys(key for result in answer.results for key in result))
    headings = map(_heading, columns)
    results = Table(*headings, title=f"{answer.bench}: what was measured", title_justify="left")
    for result in answer.results:
        results.add_row(*(_cell(result.get(column)) for column in columns))
    print_table(results)
    aims = Table("aim", title="aims", title_justify="left")
    for heading in ("value", "wanted", "met"):
        aims.add_column(heading, justify="right")
    for aim in answer.aims:
        met = "[green]yes[/green]" if aim.met else "[red]no[/red]"
        aims.add_row(aim.name, _cell(aim.value), aim.aim, met)
    print_table(aims)
    machine = ", ".join(f"{key} {value}" for key, value in answer.machine.items())
    print_line(f"measured on: {machine}")


_UNITS = {"s": "s", "ms": "ms", "us": "us", "bytes": "bytes", "percent": "%"}


def _heading(name: str) -> str:
    """The name of a result as a heading: `median_ms` is `median, ms`."""
    words = name.replace("_per_s", "/s").split("_")
    unit = _UNITS.get(words[-1]) if len(words) > 1 else None
    return " ".join(words) if unit is None else f"{' '.join(words[:-1])}, {unit}"


def _cell(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "" if value is None else ("yes" if value else "no")
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,d}" if isinstance(value, int) else str(value)
