"""docs/papers.md leaves nothing of the papers out and claims nothing that only tests run."""

import ast
import re
from functools import cache

import pytest

from tests.helpers.pages import PACKAGE, SPAN
from tests.helpers.places import ROOT, SOURCE

TEXT = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
RUNNING = ("on Spark", "simulated", "measured")
RESTING = ("model only", "not yet", "explains")
NUMBERED = {
    "DRS": {"fig": 10, "eq": 8, "alg": 2, "table": 2},
    "Elasticutor": {"fig": 16, "eq": 2, "alg": 1, "table": 3},
    "Overload": {"fig": 7, "eq": 7},
    "MST": {"fig": 10, "eq": 24, "table": 3},
    "Flink-ER": {"fig": 11, "eq": 14, "alg": 3, "table": 3},
}
"""How many figures, equations, algorithms and tables each paper has."""
ROMAN = {"I": 1, "II": 2, "III": 3}


def rows(text: str) -> list[list[str]]:
    """The rows of the tables of mechanisms: five cells, of which the last is the state."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return [row for row in cells if len(row) == 5 and row[0] != "in the paper"]


@cache
def used_names() -> frozenset[str]:
    """Every name that code outside the tests refers to; a definition is no reference."""
    found: set[str] = set()
    for base in (SOURCE, ROOT / "benchmarks", ROOT / "examples"):
        for file in base.rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Name):
                    found.add(node.id)
                elif isinstance(node, ast.Attribute):
                    found.add(node.attr)
                elif isinstance(node, ast.alias):
                    found.add(node.name.rpartition(".")[2])
    return frozenset(found)


def false_claims(text: str) -> list[str]:
    """Rows without a state, and rows that claim that code runs which only tests use."""
    faults = []
    for where, _, code, _, state in rows(text):
        if state.startswith(RESTING):
            continue
        if not state.startswith(RUNNING):
            faults.append(f"{where}: '{state}' begins with no state")
        if not code:
            faults.append(f"{where}: no code is named")
        for span in SPAN.findall(code):
            path, _, name = span.partition("::")
            ours = name and (PACKAGE / path).is_file()
            if ours and name.rpartition(".")[2] not in used_names():
                faults.append(f"{where}: only tests use {name}")
    return faults


def test_the_table_claims_only_what_runs() -> None:
    assert false_claims(TEXT) == []


def test_a_false_claim_is_found() -> None:
    text = (
        "| eq. 1 | says | `models/flow/network.py::Cut.carries` | | on Spark |\n"
        "| eq. 2 | says | `models/flow/network.py::Cut.carries` | | model only |\n"
        "| eq. 3 | says | `models/flow/network.py::Cut.capacity` | | on Spark |\n"
        "| eq. 4 | says | `models/flow/network.py` | | nearly done |\n"
        "| eq. 5 | says | | | simulated |\n"
    )
    assert false_claims(text) == [
        "eq. 1: only tests use Cut.carries",
        "eq. 4: 'nearly done' begins with no state",
        "eq. 5: no code is named",
    ]


def numbers(cells: list[str], kind: str) -> set[int]:
    """The numbers of a kind that cells name: `fig. 1, 2`, `eq. 15-17, 19`, `table II`."""
    found: set[int] = set()
    for cell in cells:
        without_sections = re.sub(r"\d+\.\d+", "", cell)
        for named in re.findall(rf"{kind}\.? ((?:[IVX]+|\d+)[^a-zA-Z]*)", without_sections):
            for first, last in re.findall(r"([IVX]+|\d+)(?:-(\d+))?", named):
                begin = ROMAN[first] if first in ROMAN else int(first)
                found |= set(range(begin, int(last or begin) + 1))
    return found


@pytest.mark.parametrize("paper", NUMBERED)
def test_no_figure_equation_algorithm_or_table_is_left_out(paper: str) -> None:
    section = TEXT.partition(f"\n## {paper}\n")[2].partition("\n## ")[0]
    cells = [row[0] for row in rows(section)]
    for kind, count in NUMBERED[paper].items():
        assert numbers(cells, kind) == set(range(1, count + 1)), f"{kind} of {paper}"
