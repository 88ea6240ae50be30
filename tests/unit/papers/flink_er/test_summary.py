"""Table 3 from the kept results of other figures."""

from pathlib import Path
from typing import Any

import pytest

from tidegate.errors import AskedWrongly
from tidegate.papers.figure import Asked
from tidegate.papers.flink_er.comparison import BREAK, GAIN
from tidegate.papers.flink_er.moving_state import FETCHED, OVER_RESTART
from tidegate.papers.flink_er.summary import table_3
from tidegate.papers.last_results import keep


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results go below the current directory."""
    monkeypatch.chdir(tmp_path)


def kept(figure: str, *, quick: bool = False, **values: float | None) -> None:
    names = {"gain": GAIN, "broken": BREAK, "fetched": FETCHED, "over": OVER_RESTART}
    document: dict[str, Any] = {
        "paper": "flink-er",
        "figure": figure,
        "quick": quick,
        "options": {},
        "verified": True,
        "aims": [
            {"name": names[name], "value": value, "aim": "", "met": True}
            for name, value in values.items()
        ],
    }
    keep(document)


def test_it_asks_for_the_figures_first() -> None:
    with pytest.raises(AskedWrongly, match="fig7 to fig11, and none of them was run here"):
        table_3(Asked(say=lambda _: None))


def test_it_sums_up_what_was_run() -> None:
    kept("fig7", gain=1.6, broken=0.4)
    kept("fig9", gain=1.55, broken=None, quick=True)
    kept("fig11", fetched=0.25, over=0.1)
    said: list[str] = []
    found = table_3(Asked(say=said.append))
    rows = {row.name: row.ours for row in found.compared}
    assert rows["Flink-ER, here flow: advantage"] == (
        "WordCount 1.60 times static's throughput; IncrementalLearning 1.55 times static's"
        " throughput"
    )
    assert rows["Flink-ER, here flow: disadvantage"] == "WordCount 0.40 s"
    assert rows["Flink-ER, here flow: with lower overhead"] == (
        "a rescale fetches 25% of what a restart does; its break is 10% of it"
    )
    assert [(aim.value, aim.met) for aim in found.aims] == [(1.55, True), (0.4, True), (0, True)]
    assert found.notes[0] == "Not run here: fig8, fig10."
    assert found.notes[1].startswith("fig9: ") and "quick" in found.notes[1]
    assert "fig8: not run here" in said


def test_a_small_gain_misses_its_aim() -> None:
    kept("fig8", gain=1.2, broken=2.0)
    found = table_3(Asked(say=lambda _: None))
    assert [aim.met for aim in found.aims] == [False, False, True]
