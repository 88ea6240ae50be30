"""`tidegate whatif`: a recorded run with another target, other cores or more load."""

import json
import sys
from pathlib import Path

import pytest

from tests.helpers.pipeline_worlds import controller, world
from tidegate import cli
from tidegate.recording import RecordWriter
from tidegate.sim.microbatch.pipeline import simulate


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> str:
    place = tmp_path_factory.mktemp("surge")
    run = simulate(world(prompt=False, latency_window_s=3.0), controller(2.0))
    with RecordWriter(place) as writer:
        for record in run.records:
            writer.write(record)
    return str(place)


@pytest.fixture
def ask(monkeypatch, capsys):
    def call(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["tidegate", "whatif", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out if not ended.value.code else said.err

    return call


def test_it_simulates_the_run_as_it_was_first(checkpoint: str, ask) -> None:
    code, said = ask(checkpoint, "--json", "--seeds", "4")
    found = json.loads(said)
    assert code == 0
    assert found["asked"] == "nothing changed"
    assert abs(found["self_check"]["within_target_error"]) <= 0.03
    assert abs(found["self_check"]["core_seconds_error"]) <= 0.07
    assert found["core_seconds"] == found["self_check"]["core_seconds"]
    assert found["oracle_core_seconds"] < found["real"]["core_seconds"]


def test_a_looser_target_costs_less_and_more_load_costs_more(checkpoint: str, ask) -> None:
    def cost(*words: str) -> float:
        code, said = ask(checkpoint, "--json", "--seeds", "2", *words)
        assert code == 0
        return float(json.loads(said)["core_seconds"])

    assert cost("--target", "4s") < cost("--target", "1.2s")
    assert cost("--load", "x1.5") > 1.2 * cost("--load", "0.8")


def test_bounds_and_policy_are_those_asked_for(checkpoint: str, ask) -> None:
    code, said = ask(checkpoint, "--json", "--seeds", "1", "--cores", "5", "--policy", "static")
    found = json.loads(said)
    assert code == 0
    assert found["asked"] == "5 to 5 cores, policy static"
    assert found["core_seconds"] == pytest.approx(5 * 120.0, rel=0.05)


def test_the_table_says_how_far_to_trust_it(checkpoint: str, ask) -> None:
    code, said = ask(checkpoint, "--seeds", "1", "--target", "3s")
    words = " ".join(said.split())
    assert code == 0
    assert "what if: a target of 3 s" in words
    assert "The simulation of the run as it was is off by" in words
    assert "oracle" in words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--load", "more"), "--load more: write a factor above 0"),
        (("--cores", "9:2"), "give a minimum from 1 up to the maximum"),
        (("--run", "7"), "has the records of 1 run"),
        (("--policy", "latenzy"), "there is no policy 'latenzy'"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(checkpoint: str, ask, words, said) -> None:
    code, heard = ask(checkpoint, *words)
    assert code == 2
    assert said in " ".join(heard.split())


def test_a_place_without_records_is_refused(tmp_path: Path, ask) -> None:
    code, heard = ask(str(tmp_path))
    assert code == 2
    assert "is not a checkpoint" in " ".join(heard.split())
