"""Every experiment that verifies answers says so by an aim that the command line understands."""

import ast
import math

from tests.helpers.pages import PACKAGE
from tests.unit.papers.elasticutor.runs import done
from tidegate.apps.paradigms import OURS
from tidegate.papers.drs.bulk import Bar
from tidegate.papers.drs.bulk import told as bulk_told
from tidegate.papers.elasticutor.dynamics import all_right
from tidegate.papers.elasticutor.exchange import replayed
from tidegate.papers.figure import ABOUT_ANSWERS, Findings

AIMS = {"Aim", "at_least", "at_most"}


def ending(name: ast.expr) -> str:
    """The last words of a text, also of one with values in it."""
    part = name.values[-1] if isinstance(name, ast.JoinedStr) else name
    return str(part.value) if isinstance(part, ast.Constant) else ""


def names() -> list[str]:
    """How the names of all aims end in the experiments' source."""
    return [
        ending(node.args[0])
        for file in (PACKAGE / "papers").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in AIMS
        and node.args
    ]


def test_aims_about_answers_are_known_by_how_they_end() -> None:
    about = [name for name in names() if "answers" in name or "row" in name.split()]
    assert len(about) >= 5
    assert [name for name in about if not name.endswith(ABOUT_ANSWERS)] == []


def test_a_wrong_answer_is_found_in_any_form() -> None:
    wrong = done(1.0, exactly_once=False)
    right = done(1.0)
    for judge in (lambda one: all_right([one]), lambda one: replayed({OURS: one})):
        assert Findings(compared=(), aims=(judge(wrong),)).wrong
        assert not Findings(compared=(), aims=(judge(right),)).wrong
        assert Findings(compared=(), aims=(judge(right),)).about_answers


def test_wrong_answers_are_found_beside_a_model_that_has_no_answer() -> None:
    bar = Bar(
        rate=5.0, split=(2, 4, 1), measured_s=2.0, mmk_s=0.5, gigk_s=1.5, micro_batch_s=math.inf
    )
    assert bulk_told([bar], ["vld: a frame is missing"]).wrong
    assert not bulk_told([bar]).wrong
