"""The pages of docs/reference, made from docstrings and from the help of commands.

`make reference` writes them. Signatures are read from the source, so that they look as they were
written and do not depend on the version of Python.
"""

import ast
import inspect
import itertools
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import typer.main

import tidegate
from tests.helpers.places import ROOT
from tidegate.cli import app

PAGES = ROOT / "docs" / "reference"

GROUPS = {
    "Build and start a pipeline": (
        "session",
        "arrivals",
        "pipeline",
        "Stream",
        "Run",
        "without_replays",
        "read_state",
    ),
    "Queries that already run": ("attach", "Attachment", "shedding"),
    "Notices": ("Notice",),
    "Keyed functions": (
        *("count", "sum", "mean", "min", "max", "latest"),
        *("aggregate", "top_n", "window", "sessions", "closing"),
    ),
    "Functions of your own": ("KeyedBatch", "Update", "Derived"),
    "Shedding and estimates": (
        *("ShedClass", "Estimate", "estimated_count", "estimated_sum", "estimated_mean"),
    ),
    "Errors": ("AskedWrongly", "TidegateError"),
}
"""Every public name, in the order of a first reading."""

INTERNAL = {
    "Attachment": {
        *("measure", "act", "notes", "alive", "over", "hurry", "keep_all", "share_of"),
        *("start", "tick", "ticks_here", "change_settings", "negotiator_for", "took_over"),
    },
    "Run": {"lost", "segments", "keep_from_now"},
    "Stream": {"graph", "node"},
    "Derived": {"positions"},
}
"""Members without an underscore that other modules of Tidegate need, and users do not."""


def api_page() -> str:
    """What `import tidegate as tg` offers."""
    listed = {name for names in GROUPS.values() for name in names}
    if listed != set(tidegate.__all__):
        raise ValueError(f"GROUPS and tidegate.__all__ differ: {listed ^ set(tidegate.__all__)}")
    parts = [
        "# Python API",
        "What `import tidegate as tg` offers, made from the docstrings by `make reference`. "
        "[Options](../options.md) lists what `start` and `attach` take, and "
        "[functions](../functions.md) explains keyed functions with examples.",
    ]
    for title, names in GROUPS.items():
        parts.append(f"## {title}")
        for name in names:
            parts += _public(name, getattr(tidegate, name))
    return "\n\n".join(parts) + "\n"


def cli_page() -> str:
    """Every command with its arguments and options, as `--help` has them."""
    group: Any = typer.main.get_command(app)
    parts = [
        "# Command line",
        "Every command with its arguments and options, made from `--help` by `make reference`. "
        "[Commands](../commands.md) says what they are for, with examples. Each of them takes "
        "`--help` as well.",
        "## tidegate",
        "Options that stand before the name of a command.",
        _options(group),
    ]
    for name, command in group.commands.items():
        context = command.make_context(name, [], resilient_parsing=True)
        usage = " ".join(["tidegate", name, *command.collect_usage_pieces(context)])
        about = inspect.cleandoc(command.help)
        parts += [f"## tidegate {name}", _code(usage), about, _options(command)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _options(command: Any) -> str:
    context = command.make_context(command.name, [], resilient_parsing=True)
    records = [one.get_help_record(context) for one in command.params]
    rows = [f"| `{_cell(left)}` | {_cell(right)} |" for left, right in filter(None, records)]
    return "\n".join(["| | |", "|---|---|", *rows]) if rows else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _public(name: str, value: Any) -> list[str]:
    if not inspect.isclass(value):
        return [f"### {name}", _code(f"tg.{_signature(value)}"), _about(value)]
    parts = [f"### {name}", _about(value)]
    hidden = INTERNAL.get(name, set())
    fields = [row for field, row in _fields(value) if field not in hidden]
    if fields:
        parts.append("\n".join(["| attribute | |", "|---|---|", *fields]))
    for member, found in inspect.getmembers(value):
        home = getattr(found.fget if isinstance(found, property) else found, "__module__", None)
        ours = isinstance(home, str) and home.startswith("tidegate")
        if member.startswith("_") or member in hidden or not ours:
            continue
        if isinstance(found, property):
            parts += [f"#### {name}.{member}", _about(found)]
        elif inspect.isfunction(found):
            parts += [f"#### {name}.{member}", _code(f".{_signature(found)}"), _about(found)]
    return parts


def _fields(kind: type) -> Iterator[tuple[str, str]]:
    """The fields of a dataclass and the attributes of others, if a docstring stands below them."""
    for home in (one for one in reversed(kind.__mro__) if one.__module__.startswith("tidegate")):
        node = _parsed(home)
        assert isinstance(node, ast.ClassDef)
        made = [one for one in node.body if getattr(one, "name", None) == "__init__"]
        for body in (node.body, *(one.body for one in made if isinstance(one, ast.FunctionDef))):
            for field, said in itertools.pairwise([*body, ast.Pass()]):
                if isinstance(field, ast.AnnAssign | ast.Assign) and (
                    _is_text(said) or body is node.body
                ):
                    target = field.target if isinstance(field, ast.AnnAssign) else field.targets[0]
                    name = ast.unparse(target).removeprefix("self.")
                    if not name.startswith("_"):
                        yield name, _field(name, field, said)


def _field(name: str, field: ast.AnnAssign | ast.Assign, said: ast.stmt) -> str:
    hint = f": {ast.unparse(field.annotation)}" if isinstance(field, ast.AnnAssign) else ""
    plain = isinstance(field.value, ast.Constant)
    default = f" = {ast.unparse(field.value)}" if plain and field.value is not None else ""
    about = _cell(ast.literal_eval(ast.unparse(said))) if _is_text(said) else ""
    return f"| `{_cell(name + hint + default)}` | {about} |"


def _is_text(said: ast.stmt) -> bool:
    return isinstance(said, ast.Expr) and isinstance(said.value, ast.Constant)


def _parsed(value: Any) -> ast.stmt:
    return ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]


def _signature(function: Any) -> str:
    """The head of a function as it is written, without `self`, on several lines if it is long."""
    node = _parsed(function)
    assert isinstance(node, ast.FunctionDef)
    parts = [part for part in _arguments(node.args, function) if part != "self"]
    returns = f" -> {_unquoted(node.returns)}" if node.returns is not None else ""
    line = f"{node.name}({', '.join(parts)}){returns}"
    if len(line) <= 88:
        return line
    return f"{node.name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){returns}"


def _arguments(every: ast.arguments, function: Any) -> Iterator[str]:
    missing = [None] * (len(every.args) - len(every.defaults))
    for argument, default in zip(every.args, [*missing, *every.defaults], strict=True):
        yield _argument(argument, default, function)
    if every.vararg is not None or every.kwonlyargs:
        yield f"*{_argument(every.vararg) if every.vararg is not None else ''}"
    for argument, default in zip(every.kwonlyargs, every.kw_defaults, strict=True):
        yield _argument(argument, default, function)
    if every.kwarg is not None:
        yield f"**{_argument(every.kwarg)}"


def _argument(argument: ast.arg, default: ast.expr | None = None, function: Any = None) -> str:
    hint = _unquoted(argument.annotation)
    text = argument.arg if not hint or hint.startswith("Unpack[") else f"{argument.arg}: {hint}"
    if isinstance(default, ast.Name):  # a constant: what it stands for says more than its name
        return f"{text} = {function.__globals__[default.id]!r}"
    return text if default is None else f"{text} = {ast.unparse(default)}"


def _unquoted(hint: ast.expr | None) -> str:
    """The source of an annotation; of one in quotes, what they contain."""
    if isinstance(hint, ast.Constant) and isinstance(hint.value, str):
        return hint.value
    return "" if hint is None else ast.unparse(hint)


def _code(text: str) -> str:
    return f"```text\n{text}\n```"


def _about(value: Any) -> str:
    """The docstring; the list of options that some end with is on a page of its own."""
    text = inspect.getdoc(value) or ""
    text = text.partition("\nOptions:\n")[0].rstrip()
    return re.sub(r"\bdocs/(\w[\w-]*)\.md\b", r"[\1](../\1.md)", text)


def main() -> None:
    """Write both pages."""
    PAGES.mkdir(exist_ok=True)
    for name, page in (("api", api_page()), ("cli", cli_page())):
        (PAGES / f"{name}.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
