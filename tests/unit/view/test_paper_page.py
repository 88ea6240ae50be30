"""The page of an experiment: values, aims and notes as text, charts, and nothing that is HTML."""

from html import escape
from pathlib import Path

import pytest

from tidegate.view.pages.paper import Curve, PaperPage, Picture, write_paper

NASTY = "<script>alert(1)</script> & more"
PAGE = PaperPage(
    title="drs fig6: sojourn of six splits, 320 µs",
    how="Ran on Spark. Operators are stretched.",
    compared=(("vld: recommended split", "10:11:1", "9:12:1"), (NASTY, NASTY, NASTY)),
    aims=(("MISSED", "rank correlation", "0.89", ">= 0.9"), ("met", NASTY, "0", "<= 0")),
    notes=("Frames differ.", NASTY),
    pictures=(
        Picture("Sojourns", "split", "seconds", (Curve("measured", ("a", "b"), (1.0, 2.0)),)),
    ),
)


def written(page: PaperPage, directory: Path) -> str:
    file = directory / "below" / "page.html"
    write_paper(page, file)
    return file.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(PAGE, tmp_path_factory.mktemp("page"))


def test_it_has_a_title_how_it_ran_values_aims_and_notes(html: str) -> None:
    assert f"<h1>{PAGE.title}</h1>" in html
    assert f"<p>{PAGE.how}</p>" in html
    assert "<td>vld: recommended split</td><td>10:11:1</td><td>9:12:1</td>" in html
    assert "<td>MISSED</td><td>rank correlation</td><td>0.89</td><td>&gt;= 0.9</td>" in html
    assert "<li>Frames differ.</li>" in html


def test_the_chart_is_there(html: str) -> None:
    assert "Sojourns" in html and "measured" in html


def test_what_looks_like_html_is_shown_as_text(html: str) -> None:
    assert NASTY not in html
    assert html.count(escape(NASTY)) == 5


def test_without_charts_and_notes_the_table_is_there(tmp_path: Path) -> None:
    page = PaperPage(title="table", how="Simulated.", compared=(("a", "1", "2"),), aims=())
    html = written(page, tmp_path)
    assert "<td>a</td><td>1</td><td>2</td>" in html
    assert "<h2>Notes" not in html and "Aims</h2>" not in html


def test_a_value_that_is_not_finite_can_be_drawn(tmp_path: Path) -> None:
    line = Curve("model", (1.0, 2.0), (float("inf"), float("nan")))
    page = PaperPage(
        title="t", how="", compared=(), aims=(), pictures=(Picture("p", "x", "y", (line,)),)
    )
    assert "model" in written(page, tmp_path)
