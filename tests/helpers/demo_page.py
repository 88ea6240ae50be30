"""Runs the demo with its page in a real browser: `python -m tests.helpers.demo_page docs/images`.

It prints how long after the surge's first second the page shows it, and takes the pictures of
docs/page.md: three sizes of screen, light and dark. It fails if a plot has no data, if the browser
reports an error, or if the page asks another host.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.helpers.browser import Tab, opened, running_browser
from tests.helpers.places import SOURCE
from tests.helpers.screenshot import save

LOAD = """() => {
  const sources = [...Bokeh.documents[0].all_models].filter((one) => one.data !== undefined);
  const column = (data) => (data instanceof Map ? data.get("load") : data["load"]) ?? [];
  return Math.max(0, ...sources.map((one) => [...column(one.data)].at(-1) ?? 0));
}"""
"""The newest load that the page shows, in rows per second."""
PATIENCE_S = 180.0
WITHIN_S = 3.0
"""So soon after a surge the page is to show it."""


@dataclass
class Demo:
    """A demo that runs in another process."""

    process: subprocess.Popen[str]
    url: str
    directory: Path

    def start_s(self) -> float:
        """When its rows began to arrive; its source says so in the offsets of its batches."""
        until_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < until_s:
            for file in self.directory.glob("tidegate-surge-*/surge/**/offsets/0"):
                found = re.search(r'"start_ms":\s*(\d+)', file.read_text(encoding="utf-8"))
                if found is not None:
                    return int(found[1]) / 1000.0
            time.sleep(0.1)
        raise AssertionError("the demo's rows did not begin to arrive")


@contextmanager
def running_demo(directory: Path, *options: str) -> Iterator[Demo]:
    """`tidegate demo --page` with its files below a directory, from the line with its address."""
    command = [sys.executable, "-m", "tidegate", "demo", "--page", "--port", "0", *options]
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "TMPDIR": str(directory)}
    with (directory / "said").open("w+", encoding="utf-8") as said:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            env=environment,
        )
        try:
            yield Demo(process, _address(process, directory / "said"), directory)
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()


def _address(process: subprocess.Popen[str], said: Path) -> str:
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        text = said.read_text(encoding="utf-8")
        if (found := re.search(r"live page: (http://\S+/)\s", text)) is not None:
            return found[1]
        assert process.poll() is None, text
        time.sleep(0.1)
    raise AssertionError("the demo did not say where its page is")


def shown_after_s(tab: Tab, above: float, since_s: float) -> float:
    """How long after a moment the page shows a load above this one."""
    tab.page.wait_for_function(f"() => ({LOAD})() > {above}", timeout=1000 * PATIENCE_S)
    return time.time() - since_s


def check(tab: Tab, demo: Demo) -> None:
    """Every plot has data, and the browser has no complaint."""
    plots = tab.plots()
    empty = [plot for plot in plots if not plot["drawn"] or not all(plot["drawn"])]
    assert plots and not empty, empty
    assert tab.errors == [], tab.errors
    assert tab.hosts == {demo.url.removeprefix("http://").rstrip("/")}, tab.hosts


PICTURES: dict[str, dict[str, Any]] = {
    "page.png": {"width": 1200, "height": 930},
    "page-tablet.png": {"width": 820, "height": 1180, "color_scheme": "dark"},
    "page-phone.png": {"width": 390, "height": 780, "color_scheme": "dark"},
}
SECONDS = 60
LOOK_S = 44.0
"""When the pictures are taken: after the surge, while cores are being released."""


def draw(pictures: Path, scratch: Path, *options: str) -> float:
    """Run the demo and write the pictures; returns how soon the surge was shown."""
    with (
        running_browser() as browser,
        running_demo(scratch, "--json", "--seconds", str(SECONDS), *options) as demo,
    ):
        with opened(browser, demo.url) as tab:
            start_s = demo.start_s()
            after_s = shown_after_s(tab, 300.0, start_s + SECONDS / 3)
            time.sleep(max(0.0, start_s + LOOK_S - time.time()))
            check(tab, demo)
        for name, how in PICTURES.items():
            with opened(browser, demo.url, **how) as tab:
                tab.page.get_by_text(re.compile("^(On target|Late): ")).wait_for()
                check(tab, demo)
                save(tab.page.screenshot(), pictures / name)
        document = json.loads(demo.process.communicate(timeout=PATIENCE_S)[0])
        print(json.dumps({name: document[name] for name in ("within_target", "verified")}))
    return after_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pictures", type=Path)
    parser.add_argument("options", nargs="*", help="more options of the demo")
    asked, options = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="tidegate-page-") as scratch:
        after_s = draw(asked.pictures, Path(scratch), *asked.options, *options)
    print(f"the page showed the surge {after_s:.1f} s after its first second began")
    if after_s > WITHIN_S:
        raise SystemExit(f"that is more than {WITHIN_S:g} s")


if __name__ == "__main__":
    main()
