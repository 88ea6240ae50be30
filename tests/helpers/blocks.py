"""The code blocks of the pages, and what is said about them."""

import re
from dataclasses import dataclass
from pathlib import Path

FENCED = re.compile(
    r"^(?:<!-- not run: (?P<reason>.+?) -->\n\s*)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
NEEDS = {"kafka.md": "a broker", "attach.md": "a cluster"}
"""Pages all of whose Python blocks need what a test does not have."""


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block."""

    page: Path
    line: int
    """Where its text begins, from 1."""
    language: str
    """As it stands behind the fence; empty for commands."""
    text: str
    not_run: str | None
    """Why no test can run it: `<!-- not run: needs a broker -->` in front of it."""

    @property
    def place(self) -> str:
        """For messages: the page and the line."""
        return f"{self.page.name}:{self.line}"


def blocks_of(page: Path, text: str | None = None) -> list[Block]:
    """The blocks of a page from top to bottom."""
    text = page.read_text(encoding="utf-8") if text is None else text
    return [
        Block(
            page=page,
            line=text.count("\n", 0, found.start("text")) + 1,
            language=found["language"],
            text=found["text"],
            not_run=found["reason"] or NEEDS.get(page.name),
        )
        for found in FENCED.finditer(text)
    ]
