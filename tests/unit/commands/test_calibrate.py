"""`tidegate calibrate`: its document, its file, Ctrl-C, and one sentence for what is wrong."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from tests.unit.apps.capacity.test_calibrate import Machine
from tidegate.cli import app, main
from tidegate.commands import calibrate as command
from tidegate.commands.plan_capacity import planned
from tidegate.models.capacity.measured import read_capacity


@pytest.fixture
def machine(monkeypatch, tmp_path: Path) -> Machine:
    """A modelled machine in the place of Spark, and a directory for what is written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    measuring = Machine()
    monkeypatch.setattr("tidegate.apps.capacity.calibrate.measure_cores", measuring)
    session = SimpleNamespace(stop=lambda: None)
    monkeypatch.setattr("tidegate.spark.session.session", lambda *given: session)
    return measuring


def run(*words: str) -> str:
    result = CliRunner().invoke(app, ["calibrate", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_document_has_the_checks_and_the_file_is_for_plan(machine: Machine) -> None:
    document = json.loads(run("grep", "--stretch", "--check", "5,8", "--json", "--out", "g.json"))
    assert document["name"] == "grep" and document["stretched"] is True
    assert [one["cores"] for one in document["predicted"]] == list(range(1, 17))
    for one in document["checks"]:
        assert one["error"] == pytest.approx(one["predicted"] / one["measured"] - 1.0)
        assert abs(one["error"]) < 0.1
        assert one["low"] <= one["measured"] <= one["high"]
    five = document["predicted"][4]
    assert five["rows_per_s"] == document["checks"][0]["predicted"]
    assert five["within_target"] > 0.0 and document["target_ms"] == 5000.0
    measured = read_capacity(Path("g.json"))
    assert measured.stretched and measured.curve == document["curve"]
    # Batches of 2 s, as measured, have a mean latency of 3 s.
    plan = planned(measured, rate=None, cores=5, latency_s=3.0, qos=0.5)
    assert plan.expected_rows_per_s == pytest.approx(five["rows_per_s"], rel=0.02)


def test_people_see_what_was_measured_and_what_is_predicted(machine: Machine) -> None:
    shown = run("grep", "--check", "5", "--counts", "1,2,3,4", "--repeats", "2", "--target", "3s")
    assert "within 3 s" in shown
    assert "check at 5 cores" in shown
    assert "tasks share them" in shown
    assert "out/capacity-grep.json" in shown
    assert Path("out/capacity-grep.json").is_file()


def test_no_throughput_is_promised_within_a_target_that_no_batch_can_keep(
    machine: Machine,
) -> None:
    document = json.loads(run("grep", "--stretch", "--target", "1ms", "--json"))
    assert all(one["within_target"] is None for one in document["predicted"])


def test_ctrl_c_writes_the_file_and_ends_with_its_code(
    machine: Machine, monkeypatch, capsys
) -> None:
    machine.interrupted_at = 4
    monkeypatch.setattr(sys, "argv", ["tidegate", "calibrate", "grep", "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    out, err = capsys.readouterr()
    assert json.loads(out)["interrupted"] is True
    assert err.splitlines()[-1] == "tidegate: stopped"
    assert len(read_capacity(Path("out/capacity-grep.json")).samples) == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["gerp"], "there is no application 'gerp'; did you mean 'grep'?"),
        (["vld"], "'vld' has a source of its own"),
        (["grep", "--counts", "1,x"], "--counts 1,x: give numbers of cores"),
        (["grep", "--counts", ""], "--counts"),
        (["grep", "--check", "2"], "the fit uses 2 cores as well"),
        (["grep", "--counts", "1,30"], "at most 24 tasks"),
        (["grep", "--rows", "a.parquet"], "--rows is for a script"),
        (["grep", "--sinks"], "--sinks is for a script"),
        (["grep", "--option", "wrds=3"], "'grep' has no option 'wrds'; did you mean 'words'?"),
        (["grep", "--k", "7"], "7 of the latest 5"),
        (["grep", "--batch", "2"], "'2' is not a duration"),
        (["grep", "--out", "no/such/place.json"], "a directory that exists"),
        (["ads.py"], "ads.py needs --rows"),
        (["ads.py", "--rows", "a.parquet", "--stretch"], "--stretch is for an application"),
        (["ads.py", "--rows", "a.parquet", "--option", "a=1"], "--option is for an application"),
        (["ads.py", "--rows", "a.parquet"], "there is no script ads.py"),
    ],
)
def test_what_is_asked_wrongly_is_one_sentence_before_spark_starts(
    machine: Machine, monkeypatch, capsys, words: list[str], says: str
) -> None:
    def never(*given: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("tidegate.spark.session.session", never)
    monkeypatch.setattr(sys, "argv", ["tidegate", "calibrate", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert says in capsys.readouterr().err.replace("\n", " ")


def test_numbers_of_cores_are_read_once_each() -> None:
    assert command.parse_cores("counts", "4, 1,2,2") == (1, 2, 4)
