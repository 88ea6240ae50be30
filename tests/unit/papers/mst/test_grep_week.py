"""Figure 10: Grep over a week, by policy."""

import numpy as np
import pytest

from tidegate.papers.figure import Asked
from tidegate.papers.mst import grep_week
from tidegate.papers.mst.contenders import OURS
from tidegate.papers.mst.grep_week import REFERENCES, SHOWN, GrepRun, told


def run(machines: float, backlog: float) -> GrepRun:
    minutes = np.ones(1445)
    return GrepRun(
        machines=machines * minutes,
        capacity=0.3 * machines * minutes,
        backlog=np.concatenate([[backlog], np.zeros(1444)]),
        qos=99.0,
    )


def test_a_backlog_and_a_price_are_told_beside_the_papers() -> None:
    found = {
        **{one: run(40.0, 100.0) for one in (*SHOWN, *OURS, *REFERENCES)},
        SHOWN[0]: run(30.0, 3790.0),
    }
    findings = told(np.ones(1445), found, "loads")
    first = findings.compared[0]
    assert (first.name, first.paper, first.ours) == ("0:MST: largest backlog, GB", 12.8, 3.79)
    assert "722" in str(findings.compared[1].ours), "machine-hours"
    assert all(aim.met for aim in findings.aims)
    worse = {**found, OURS[-1]: run(50.0, 200.0)}
    assert [aim.met for aim in told(np.ones(1445), worse, "loads").aims] == [True, False, False]


def test_lines_have_one_value_for_ten_minutes() -> None:
    found = {one: run(40.0, 100.0) for one in (*SHOWN, *OURS, *REFERENCES)}
    load, machines, backlog = told(np.arange(1445.0), found, "loads").pictures
    assert load.lines[0].y[:2] == (9.0, 19.0), "the highest load of each ten minutes"
    assert len(load.lines[0].x) == 144
    assert backlog.lines[0].y[0] == 100.0
    assert machines.lines[0].y[-1] == 40.0
    assert not any(line.marked for line in load.lines)
    assert "ground-truth" in [line.name for line in machines.lines]
    assert "1:MST+UA" in [line.name for line in backlog.lines]


def test_it_runs_in_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grep_week, "QUICK_MINUTES", 400)
    asked = Asked(quick=True)
    found = grep_week.figure_10(asked)
    far = asked.progress.how_far()
    assert far.what == "static-peak" and far.share is not None and far.share > 0.9
    rows = {one.name: one.ours for one in found.compared}
    assert rows["ground-truth: largest backlog, GB"] == 0.0
    assert len(found.pictures[0].lines[0].x) == 40
