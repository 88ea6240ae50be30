"""A real browser for tests: Debian's chromium, driven by playwright; else tests are skipped."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

PLOTS = """() => {
  const found = [];
  const walk = (view) => {
    if (view.model.type === "Figure") {
      const drawn = view.model.renderers.map((one) => {
        const data = one.data_source.data;
        const columns = data instanceof Map ? [...data.values()] : Object.values(data);
        return columns.length && columns.every((c) => c.length > 1)
          && columns.some((c) => [...c].some(Number.isFinite));
      });
      found.push({root: view.root.model.name, drawn});
    }
    for (const child of view.child_views ?? []) walk(child);
  };
  for (const root of Object.values(Bokeh.index)) walk(root);
  return found;
}"""
"""Every plot on the page, by the name of its panel, and whether each of its lines has data."""


@contextmanager
def running_browser() -> Iterator[Any]:
    """The browser, or a skip with the reason."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="browser tests need the package playwright"
    )
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip("there is no browser: install chromium (Debian: apt-get install -y chromium)")
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=root)
        yield browser
        browser.close()


@dataclass
class Tab:
    """A tab that notes what goes wrong in it and which hosts it asks."""

    page: Any
    errors: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def wait_for_plots(self) -> None:
        """Wait until the page is drawn."""
        self.page.wait_for_function("() => window.Bokeh?.documents[0]?.is_idle", timeout=60_000)

    def text(self, panel: str) -> str:
        """The text of a panel; its parts are in shadow trees, which `inner_text` leaves out."""
        parts = self.page.locator(f"section#{panel} .bk-clearfix")
        parts.first.wait_for()
        return "\n".join(parts.all_inner_texts())

    def plots(self) -> list[dict[str, Any]]:
        """Every plot, and whether each of its lines has data."""
        return list(self.page.evaluate(PLOTS))


@contextmanager
def opened(
    browser: Any, url: str, width: int = 1280, height: int = 860, **how: Any
) -> Iterator[Tab]:
    """A tab on an address."""
    context = browser.new_context(viewport={"width": width, "height": height}, **how)
    context.set_default_timeout(60_000)
    tab = Tab(context.new_page())

    def said(message: Any) -> None:
        if message.type == "error":
            tab.errors.append(message.text)

    def asked(request: Any) -> None:
        tab.hosts.add(urlsplit(request.url).netloc)

    tab.page.on("console", said)
    tab.page.on("pageerror", lambda error: tab.errors.append(str(error)))
    tab.page.on("request", asked)
    tab.page.on("websocket", lambda socket: tab.hosts.add(urlsplit(socket.url).netloc))
    tab.page.goto(url)
    tab.wait_for_plots()
    yield tab
    context.close()
