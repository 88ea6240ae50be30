"""The HTML picture: whole in one file, and with every decision in words."""

import dataclasses
import json
import re
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.synthetic_surge import NOTE, REASONS, surge
from tidegate.control.decision import hold
from tidegate.errors import AskedWrongly
from tidegate.view.pages.columns import columns_of
from tidegate.view.pages.run import write_picture
from tidegate.view.summary import summarise

TITLE = "A surge </title><script>alert(1)</script> & more"


class Page(HTMLParser):
    """What a browser would fetch, and the text it would show."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.tags: list[str] = []
        self.shown = ""
        self._hidden = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [value or "" for name, value in attributes if name in ("src", "href")]
        self._hidden += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.shown += data + " "


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("picture") / "run.html"
    write_picture(surge(), path, TITLE)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def models(html: str) -> list[dict[str, Any]]:
    """Every model of the charts."""
    found = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', html, re.S)
    assert found is not None
    models: list[dict[str, Any]] = []

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            if "name" in node and "attributes" in node:
                models.append(node)
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(json.loads(unescape(found[1])))
    return models


def test_it_fetches_nothing(html: str) -> None:
    page = Page(html)
    assert page.fetched == []
    assert "link" not in page.tags and "iframe" not in page.tags
    assert "@import" not in html
    assert not re.search(r"url\(\s*['\"]?https?:", html)


def test_what_came_of_it_is_there_as_text(html: str) -> None:
    page = Page(html)
    for label, value in summarise(surge()).lines():
        assert f"{label} {value}" in page.shown
    assert "cores 2 to 4, tasks of per_ad 2 to 4" in page.shown
    assert "held back: the maximum is 4" in page.shown
    assert NOTE in page.shown
    for reason in REASONS.values():
        assert escape(reason) in html
        assert reason in page.shown


def test_names_and_reasons_are_no_markup(html: str) -> None:
    assert "alert(1)</script>" not in html
    assert escape(TITLE) in html
    assert "<td>task 1 of per_ad does 1.6 times the mean & <b>" not in html


def test_the_charts_share_one_axis_of_time(models: list[dict[str, Any]]) -> None:
    figures = [model for model in models if model["name"] == "Figure"]
    titles = [figure["attributes"]["title"]["attributes"]["text"] for figure in figures]
    assert [title.split(":")[0] for title in titles] == [
        "Load",
        "Latency",
        "Decisions",
        "Cores",
        "Tasks",
        "Imbalance",
        "Backlog",
    ]
    ranges = [figure["attributes"]["x_range"] for figure in figures]
    assert {one["id"] for one in ranges} == {ranges[0]["id"]}
    assert ranges[0]["attributes"]["end"] == 40.0


def test_markers_tell_more_from_less_and_done_from_not(models: list[dict[str, Any]]) -> None:
    data = next(
        dict(model["attributes"]["data"]["entries"])
        for model in models
        if model["name"] == "ColumnDataSource"
        and "marker" in dict(model["attributes"]["data"]["entries"])
    )
    marks = list(zip(data["time"], data["kind"], data["marker"], strict=True))
    assert marks == [
        (11.0, "cores", "triangle"),
        (11.0, "tasks", "triangle"),
        (11.0, "tasks", "triangle"),
        (15.0, "moves", "diamond"),
        (21.0, "cores", "x"),
        (36.0, "cores", "inverted_triangle"),
        (36.0, "tasks", "inverted_triangle"),
        (36.0, "tasks", "inverted_triangle"),
    ]
    assert data["reason"][3] == REASONS[14]


def test_the_target_is_drawn(models: list[dict[str, Any]]) -> None:
    bottoms = [
        model["attributes"].get("bottom") for model in models if model["name"] == "BoxAnnotation"
    ]
    assert 2.0 in bottoms
    items = [model["attributes"]["label"] for model in models if model["name"] == "LegendItem"]
    assert "target 2 s" in [label["value"] for label in items]


def test_a_run_without_latency_operators_or_decisions_is_drawn(tmp_path: Path) -> None:
    bare = [
        dataclasses.replace(
            one,
            target_s=None,
            predicted_latency_s=None,
            decision=hold("enough"),
            measurement=dataclasses.replace(
                one.measurement, latency=None, operators=(), cores_busy=None
            ),
        )
        for one in surge(2)
    ]
    write_picture(bare, tmp_path / "bare.html", "bare")
    text = (tmp_path / "bare.html").read_text(encoding="utf-8")
    assert "No change was needed." in text
    assert '"Imbalance' not in text


def test_bad_asks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AskedWrongly, match="no record to draw"):
        write_picture([], tmp_path / "a.html", "x")
    with pytest.raises(AskedWrongly, match=r"directory .*nowhere of the picture does not exist"):
        write_picture(surge(1), tmp_path / "nowhere" / "a.html", "x")


def test_columns() -> None:
    run = columns_of(surge())
    assert (run.unit, run.time[0], run.time[-1]) == ("seconds", 1.0, 40.0)
    assert np.flatnonzero(np.isnan(run.mean_s)).tolist() == [12]
    assert list(run.imbalance) == ["per_ad"]
    assert run.tasks["parse"][11] == 4
    assert run.since_start(surge()[9].measurement.at_s) == 10.0


@pytest.mark.parametrize(("step_s", "unit"), [(1, "seconds"), (30, "minutes"), (600, "hours")])
def test_time_is_told_in_a_unit_that_suits(step_s: int, unit: str) -> None:
    records = surge()
    start_s = records[0].measurement.at_s
    stretched = [
        dataclasses.replace(
            one,
            measurement=dataclasses.replace(one.measurement, at_s=start_s + step_s * place),
        )
        for place, one in enumerate(records)
    ]
    assert columns_of(stretched).unit == unit
