"""The Markdown pages of the repository, read for what they name."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.helpers.places import ROOT, SOURCE

PACKAGE = SOURCE / "tidegate"
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))

FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`([^`]+)`")


def code_spans(text: str) -> Iterator[str]:
    """What stands in backticks, outside of code blocks."""
    for found in SPAN.finditer(FENCE.sub("", text)):
        yield " ".join(found[1].split())


def code_lines(text: str) -> Iterator[str]:
    """The lines of code blocks, fenced or indented, without their remarks (# ...)."""
    for block in FENCE.findall(text):
        yield from (line.split(" #")[0].strip() for line in block.splitlines()[1:-1])
    for line in FENCE.sub("", text).splitlines():
        if line.startswith("    "):
            yield line.split(" #")[0].strip()


def code(text: str) -> list[str]:
    """Spans and lines of code together."""
    return [*code_spans(text), *code_lines(text)]


@cache
def defined(file: Path) -> frozenset[str]:
    """Functions, classes and constants of a module, and `Class.member` for members of classes."""
    names: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        for name in _names(node):
            names.add(name)
            if isinstance(node, ast.ClassDef):
                names |= {f"{name}.{member}" for inner in node.body for member in _names(inner)}
    return frozenset(names)


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []
