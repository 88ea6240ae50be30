"""What the runbook quotes is what Tidegate says."""

import ast
import re
from functools import cache

from tests.helpers.pages import PACKAGE, code_spans
from tests.helpers.places import ROOT

RUNBOOK = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")


@cache
def said() -> str:
    """Every text in the source, one a line; `...` stands for what is filled in."""
    texts = []
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                texts.append("".join(_part(part) for part in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(re.sub(r"%(\.\d)?[sdf]", "...", node.value))
    return "\n".join(" ".join(text.split()) for text in texts)


def _part(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "..."


def unsaid(text: str) -> list[str]:
    """Quoted sentences of which some part is in no text of the source."""
    return [
        span
        for span in code_spans(text)
        if len(re.findall(r"[a-z]{2,}", span)) >= 3 and re.match(r"[a-z.]", span) and " " in span
        if not span.startswith(("tidegate ", "make ", "run.", "beliefs", "measurement."))
        and any(part.strip() not in said() for part in span.split("..."))
    ]


def test_every_quoted_sentence_is_in_the_source() -> None:
    assert unsaid(RUNBOOK) == []
    assert sum(" ... " in span for span in code_spans(RUNBOOK)) > 12


def test_a_sentence_that_nobody_says_is_found() -> None:
    assert unsaid("`the tide of ... is out` and `no batch ended for ... s`") == [
        "the tide of ... is out"
    ]
