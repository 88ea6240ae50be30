"""Pictures of the docs: all are shown somewhere, small, and those of the gallery have a command."""

import re

import pytest

from tests.helpers.blocks import blocks_of
from tests.helpers.pages import PAGES
from tests.helpers.places import ROOT

IMAGES = sorted((ROOT / "docs" / "images").iterdir())
GALLERY = ROOT / "docs" / "gallery.md"
PICTURE = re.compile(r"!\[([^\]]+)\]\(([^)]+)\)")
MOST_BYTES = 110_000
"""A picture of charts with few colours is far smaller (`tests/helpers/screenshot.py`)."""


def sections() -> list[tuple[str, str]]:
    """Title and text of each run; the last section is about the pictures."""
    _, *parts, _ = re.split(r"^## ", GALLERY.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [(title, text) for title, _, text in (part.partition("\n") for part in parts)]


@pytest.mark.parametrize("image", IMAGES, ids=lambda image: image.name)
def test_a_picture_is_small_and_shown(image) -> None:
    assert image.stat().st_size <= MOST_BYTES
    shown = {
        (page.parent / path).resolve()
        for page in PAGES
        for _, path in PICTURE.findall(page.read_text(encoding="utf-8"))
    }
    assert image in shown


@pytest.mark.parametrize(("title", "text"), sections(), ids=lambda part: part[:20])
def test_a_run_has_its_picture_its_words_and_its_command(title: str, text: str) -> None:
    pictures = PICTURE.findall(text)
    assert pictures, title
    assert all(len(words) > 40 for words, _ in pictures), "for those who do not see it"
    assert all((GALLERY.parent / path).exists() for _, path in pictures)
    commands = [block for block in blocks_of(GALLERY, text) if block.language == "bash"]
    assert len(commands) == 1, "one command made it"
