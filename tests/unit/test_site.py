"""The pages as a site: it builds without a warning, has every page, and loads nothing from afar."""

import logging
import re
from pathlib import Path

import pytest

from tests.helpers.places import ROOT

LOADED = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=\"([^\"]+)\"")
IN_STYLE = re.compile(r"url\(['\"]?(https?:)?//|@import")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    place = tmp_path_factory.mktemp("site")
    warned: list[str] = []

    class Warned(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            warned.append(record.getMessage())

    handler = Warned(level=logging.WARNING)
    logging.getLogger("mkdocs").addHandler(handler)
    try:
        build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(place)))
    finally:
        logging.getLogger("mkdocs").removeHandler(handler)
    assert warned == []
    return place


def test_every_page_is_there(site: Path) -> None:
    pages = {file.relative_to(ROOT / "docs").with_suffix("") for file in ROOT.glob("docs/**/*.md")}
    built = {file.relative_to(site).with_suffix("") for file in site.rglob("*.html")}
    assert len(pages) > 40
    assert pages <= built


def test_nothing_is_loaded_from_another_place(site: Path) -> None:
    pages = [file.read_text(encoding="utf-8") for file in site.rglob("*.html")]
    loaded = {address for page in pages for address in LOADED.findall(page)}
    assert len(loaded) > 5
    assert [one for one in loaded if "//" in one] == []
    styles = [file.read_text(encoding="utf-8") for file in site.rglob("*.css")]
    assert [found[0] for style in styles if (found := IN_STYLE.search(style))] == []
