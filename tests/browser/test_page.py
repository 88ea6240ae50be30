"""The live page in a real browser, on simulated runs: drawn, live, readable, and by itself."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.helpers.browser import opened, running_browser
from tests.helpers.pipeline_worlds import controller, world
from tidegate.control.lag import Lag, PartitionLag
from tidegate.control.record import Record
from tidegate.control.row_counts import SourceCount
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.view.live.page.address import PageAddress
from tidegate.view.live.page.document import PANELS
from tidegate.view.live.page.feed import OracleUntil
from tidegate.view.live.page.server import Page

CHARTS = {"latency", "load", "cores", "backlog", "tasks", "cost", "shedding"}
SIZES = [(390, 844), (820, 1180), (1600, 900)]
LEGENDS = """() => [...Bokeh.documents[0].all_models]
  .filter((one) => one.type === "LegendItem").map((one) => one.label.value)"""
"""The names of all lines of all charts."""
SURGE = 60
"""The load of the simulated run rises at second 30 and falls at 60."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with running_browser() as running:
        yield running


@pytest.fixture(scope="session")
def records() -> list[Record]:
    """A run that ended this moment, of a topic, with some rows shed."""
    found = list(simulate(world(), controller()).records)
    later_s = time.time() - found[-1].measurement.at_s
    counts = SourceCount(name="clicks", offered=1000, kept=990)
    lag = Lag(partitions=(PartitionLag(topic="clicks", partition=0, behind_rows=7),), seconds=0.4)
    return [
        replace(
            one,
            measurement=replace(
                tick := one.measurement,
                at_s=tick.at_s + later_s,
                sources=(counts,),
                segments=tuple(replace(segment, lag=lag) for segment in tick.segments),
            ),
        )
        for one in found
    ]


def served(records: Sequence[Record], name: str = "clicks", address: Any = None) -> Page:
    page = Page(address or PageAddress("127.0.0.1", 0))
    feed = page.add(name)
    for record in records:
        feed.add(record)
    return page


@pytest.fixture(scope="module")
def page(records: list[Record]) -> Iterator[Page]:
    running = served(records)
    running.feeds[0].oracle = OracleUntil(records[-1].measurement.at_s, 400.0, 500.0)
    yield running
    running.close()


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_plot_has_data_on_every_screen(
    browser: Any, page: Page, width: int, height: int
) -> None:
    with opened(browser, page.url, width, height) as tab:
        plots = tab.plots()
        assert {plot["root"] for plot in plots} == CHARTS
        assert all(plot["drawn"] and all(plot["drawn"]) for plot in plots), plots
        for panel in PANELS:
            section = tab.page.locator(f"section#{panel.name}")
            section.scroll_into_view_if_needed()
            assert section.is_visible()
            box = section.bounding_box()
            assert box is not None and box["width"] > 0.9 * min(width, 400) - 40
        inside = tab.page.evaluate("document.documentElement.scrollWidth")
        assert inside <= width, "nothing sticks out to the side"
        assert tab.errors == []
        assert tab.hosts == {page.url.removeprefix("http://").rstrip("/")}


def test_it_says_at_a_glance_how_it_is(browser: Any, page: Page, records: list[Record]) -> None:
    feed = page.feeds[0]
    last = replace(records[-1].measurement, at_s=time.time())
    feed.add(replace(records[-1], measurement=last))
    with opened(browser, page.url) as tab:
        state = tab.text("state")
        assert "On target: mean latency" in state
        assert "of a static peak" in state
        assert "count" in tab.page.locator("section#pipeline svg").text_content()
        log = tab.text("decisions")
        assert "cores 2 to 12" in log and "cannot keep up" in log
        assert "400 would have held the target (the oracle); 1.25 times" in tab.text("cost")
        assert "1,2" in tab.text("shedding")
        assert tab.page.evaluate(LEGENDS).count("left in the source") == 1, "the topic's lag"


def test_a_surge_shows_while_the_page_is_open(browser: Any, records: list[Record]) -> None:
    page = served(records[:25])
    highest = """() => {
      const sources = [...Bokeh.documents[0].all_models].filter((one) => one.data !== undefined);
      const column = (data) => (data instanceof Map ? data.get("load") : data["load"]) ?? [];
      return Math.max(...sources.flatMap((one) => [...column(one.data)]));
    }"""
    try:
        with opened(browser, page.url) as tab:
            assert tab.page.evaluate(highest) < 1500
            for record in records[25:SURGE]:
                page.feeds[0].add(record)
            tab.page.wait_for_function(f"() => ({highest})() > 3500")
            tab.page.wait_for_function(
                "() => Bokeh.documents[0].get_model_by_name('decisions').text.includes('2 to 12')"
            )
            assert tab.errors == []
    finally:
        page.close()


def test_a_plot_alone_for_a_wall(browser: Any, page: Page) -> None:
    with opened(browser, f"{page.url}?plot=latency") as tab:
        assert [plot["root"] for plot in tab.plots()] == ["latency"]
        assert tab.page.locator("section").count() == 1
        assert tab.errors == []


def test_it_is_dark_for_those_who_prefer_it(browser: Any, page: Page) -> None:
    colours = """() => {
      const style = getComputedStyle(document.querySelector('.page'));
      return [style.color, getComputedStyle(document.documentElement).backgroundColor];
    }"""
    seen = {}
    for scheme in ("light", "dark"):
        with opened(browser, page.url, color_scheme=scheme) as tab:
            seen[scheme] = [brightness(colour) for colour in tab.page.evaluate(colours)]
    (light_ink, light_paper), (dark_ink, dark_paper) = seen["light"], seen["dark"]
    assert light_ink < 60 < 200 < light_paper
    assert dark_paper < 60 < 200 < dark_ink


def brightness(colour: str) -> float:
    numbers = [float(part) for part in colour.strip("rgba()").split(",")[:3]]
    return sum(numbers) / 3


def test_it_can_be_used_by_keyboard(browser: Any, page: Page) -> None:
    with opened(browser, page.url) as tab:
        reached = []
        for _ in range(20):
            tab.page.keyboard.press("Tab")
            reached.append(tab.page.evaluate("document.activeElement.textContent.trim()"))
        assert reached[0] == "Skip to the charts"
        assert {"Latency", "Load", "Cores", "Decisions"} <= set(reached)


def test_names_of_others_are_only_text(browser: Any, records: list[Record]) -> None:
    bad = "<img src=x onerror=alert(1)>"
    record = records[-1]
    tick = record.measurement
    operators = tuple(replace(one, name=bad) for one in tick.operators[:1])
    decision = replace(record.decision, reason=bad, notes=(bad,), cores=99)
    evil = replace(record, measurement=replace(tick, operators=operators), decision=decision)
    page = served([evil, evil], name=bad)
    try:
        with opened(browser, page.url) as tab:
            tab.page.on("dialog", lambda dialog: tab.errors.append(dialog.message))
            assert tab.page.locator("h1").inner_text() == bad
            assert tab.page.locator("img").count() == 0
            assert bad in tab.text("decisions")
            assert tab.errors == []
    finally:
        page.close()


def test_several_pipelines_have_a_page_together_and_one_each(
    browser: Any, records: list[Record]
) -> None:
    page = served(records)
    other = page.add("orders")
    for record in records:
        other.add(record)
    try:
        with opened(browser, page.url) as tab:
            assert {plot["root"] for plot in tab.plots()} == {
                "latency-0",
                "cores-0",
                "latency-1",
                "cores-1",
            }
            tab.page.get_by_role("link", name="orders").first.click()
            tab.page.wait_for_url("**/?pipeline=orders")
            tab.wait_for_plots()
            assert {plot["root"] for plot in tab.plots()} == CHARTS
            assert tab.errors == []
    finally:
        page.close()


class TokenAddress(PageAddress):
    """An address that asks for a token, although it is on loopback."""

    def token(self) -> str | None:
        return "secret"


def test_a_browser_with_the_token_gets_in_and_stays_in(browser: Any, records: list[Record]) -> None:
    page = served(records, address=TokenAddress("127.0.0.1", 0))
    try:
        with opened(browser, page.url) as tab:
            assert len(tab.plots()) > 5
            tab.page.goto(page.url.partition("?")[0] + "?plot=cores")
            tab.wait_for_plots()
            assert [plot["root"] for plot in tab.plots()] == ["cores"]
            assert tab.errors == []
    finally:
        page.close()
