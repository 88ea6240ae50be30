"""Draws the pictures of docs/page.md: `python -m tests.helpers.page_pictures docs/images`.

They show a simulated run, so they need no Spark and are the same every time but for the clock.
"""

import sys
import time
from dataclasses import replace
from pathlib import Path

from tests.helpers.browser import opened, running_browser
from tests.helpers.pipeline_worlds import controller, world
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.view.live.page.address import PageAddress
from tidegate.view.live.page.server import Page

SEEN = 110
"""The second of the run at which the pictures are taken: some time after the surge."""
PICTURES = {
    "page.png": {"width": 1200, "height": 930, "color_scheme": "light"},
    "page-phone.png": {"width": 390, "height": 780, "color_scheme": "dark"},
}


def draw(directory: Path) -> None:
    """Write the pictures into a directory."""
    records = list(simulate(world(), controller()).records)[:SEEN]
    page = Page(PageAddress("127.0.0.1", 0))
    feed = page.add("clicks")
    with running_browser() as browser:
        later_s = time.time() - records[-1].measurement.at_s
        for record in records:
            at_s = record.measurement.at_s + later_s
            feed.add(replace(record, measurement=replace(record.measurement, at_s=at_s)))
        for name, how in PICTURES.items():
            with opened(browser, page.url, **how) as tab:
                last = replace(records[-1].measurement, at_s=time.time())
                feed.add(replace(records[-1], measurement=last))
                tab.page.get_by_text("On target: mean").wait_for()
                tab.page.screenshot(path=directory / name)
    page.close()


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
