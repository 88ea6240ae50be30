"""Takes a picture of a page for the docs: `python -m tests.helpers.screenshot PAGE PICTURE.png`.

PAGE is a file that a command wrote, such as out/demo.html, or the address of a live page. The
picture has few colours, as charts have, so it is small.
"""

import argparse
import io
from pathlib import Path
from typing import Any

from PIL import Image

from tests.helpers.browser import running_browser

COLOURS = 128


def save(png: bytes, place: Path) -> None:
    """Write a picture with few colours."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    # Rare colours matter as well: a thin line is one.
    few = picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(place, optimize=True)


def photograph(browser: Any, page: str, place: Path, **asked: Any) -> None:
    """Open a page, wait until its charts are drawn, and take a picture of it.

    `part` names an element to show alone; `from_px` and `height` cut the page otherwise.
    """
    width, height = asked.get("width") or 1000, asked.get("height") or 800
    from_px = asked.get("from_px") or 0
    context = browser.new_context(
        viewport={"width": width, "height": height + from_px},
        color_scheme="dark" if asked.get("dark") else "light",
    )
    tab = context.new_page()
    tab.goto(page if "://" in page else Path(page).resolve().as_uri())
    tab.wait_for_function("() => window.Bokeh?.documents[0]?.is_idle")
    if asked.get("part"):
        png = tab.locator(asked["part"]).first.screenshot()
    else:
        cut = {"x": 0, "y": from_px, "width": width, "height": height}
        png = tab.screenshot(clip=cut)
    save(png, place)
    context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page")
    parser.add_argument("picture", type=Path)
    parser.add_argument("--width", type=int)
    parser.add_argument("--height", type=int)
    parser.add_argument("--from-px", type=int, help="where the picture begins, from the top")
    parser.add_argument("--part", help="a CSS selector of the part to show")
    parser.add_argument("--dark", action="store_true")
    asked = vars(parser.parse_args())
    with running_browser() as browser:
        photograph(browser, asked.pop("page"), asked.pop("picture"), **asked)


if __name__ == "__main__":
    main()
