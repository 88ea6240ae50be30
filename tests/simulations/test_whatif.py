"""`tidegate whatif`: a recorded run with another target, other cores or more load."""

import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.pipeline_worlds import BOUNDS, controller, world
from tidegate import cli
from tidegate.commands import whatif_answer
from tidegate.commands.recorded_assembly import parse_bounds
from tidegate.commands.whatif_answer import answer
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.controller import Controller
from tidegate.control.limits import Limits
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.progress import Progress
from tidegate.recording import RecordWriter
from tidegate.sim.microbatch.outcome import Outcome
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.workload.profile import constant


@pytest.fixture(scope="module")
def records() -> tuple[Record, ...]:
    return simulate(world(prompt=False, latency_window_s=3.0), controller(2.0)).records


def write(place: Path, records: Sequence[Record]) -> str:
    with RecordWriter(place) as writer:
        for record in records:
            writer.write(record)
    return str(place)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory, records: tuple[Record, ...]) -> str:
    return write(tmp_path_factory.mktemp("surge"), records)


@pytest.fixture
def ask(monkeypatch, capsys):
    def call(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["tidegate", "whatif", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out if not ended.value.code else said.err

    return call


def test_msts_policies_can_be_asked_about(checkpoint: str, ask) -> None:
    """The surge lasts 30 s, so the cycle must be short. The policy begins with nothing learned, and
    learns what more cores can do only while the surge rises."""
    code, said = ask(checkpoint, "--json", "--seeds", "2", "--policy", "mst-7(cycle=2s)")
    found = json.loads(said)
    assert code == 0
    assert found["asked"] == "policy mst-7(cycle=2 s)"
    assert found["within_target"] > 0.85
    assert found["core_seconds"] < 2.2 * found["oracle_core_seconds"]


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
        code, said = ask(checkpoint, "--json", "--seeds", "1", *words)
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


def test_it_says_how_far_to_trust_it_before_it_answers(checkpoint: str, ask) -> None:
    code, said = ask(checkpoint, "--seeds", "2", "--target", "3s")
    words = " ".join(said.split())
    assert code == 0
    trust = words.index("The simulation of the run as it was is off by")
    assert trust < words.index("what if: a target of 3 s")
    assert "oracle" in words


class Seen(Progress):
    """Remembers what was told, and how far it was then."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []
        self.shares: list[float] = []

    def step(self, what: str, weight: float = 1.0) -> None:
        super().step(what, weight)
        self.told.append(what)

    def within(self, share: float) -> None:
        super().within(share)
        self.shares.append(self.how_far().share or 0.0)


def test_progress_advances_with_the_simulated_time(records) -> None:
    made = Assembly.of(records[0].assembly)
    asked = dataclasses.replace(made, target=Target(3.0))
    seen = Seen()
    answer(records, made, asked, warm_up_s=20.0, seeds=2, progress=seen)
    assert seen.told == [
        "simulating the run as it was, 1 of 2",
        "simulating the run as it was, 2 of 2",
        "simulating the run with a target of 3 s, 1 of 2",
        "simulating the run with a target of 3 s, 2 of 2",
    ]
    assert seen.shares == sorted(seen.shares)
    assert len(set(seen.shares)) > len(seen.told)


def test_decisions_of_a_dry_run_are_acted_on(tmp_path: Path, ask) -> None:
    """On a dry run's records the question is what acting would have done."""
    dry = Assembly(target=Target(2.0), bounds=BOUNDS, limits=Limits(dry_run=True))
    run = simulate(world(prompt=False, latency_window_s=3.0, cores=6), new_controller(dry))
    where = write(tmp_path, run.records)
    code, said = ask(where, "--json", "--seeds", "1", "--target", "4s", "--cores", "1:20")
    found = json.loads(said)
    assert code == 0
    assert "decisions acted on, where the run was dry" in found["asked"]
    assert found["real"]["changes"] == found["self_check"]["changes"] == 0
    assert found["changes"] > 0
    assert found["core_seconds"] < 0.9 * found["real"]["core_seconds"]


@pytest.mark.parametrize(("bounds", "first"), [("1:1", 1), ("7:20", 7), ("1:20", 2)])
def test_it_begins_with_cores_within_the_bounds_asked_for(
    records, bounds: str, first: int, monkeypatch
) -> None:
    begun: list[int] = []
    real = whatif_answer.simulate

    def watched(where: World, by: Controller, **options: Any) -> Outcome:
        begun.append(where.cores)
        return real(where, by, **options)

    monkeypatch.setattr(whatif_answer, "simulate", watched)
    made = Assembly.of(records[0].assembly)
    asked = dataclasses.replace(made, bounds=parse_bounds(bounds) or BOUNDS)
    answer(records, made, asked, warm_up_s=20.0, seeds=1)
    assert begun == [2, first]


def test_whole_executors_are_begun_with() -> None:
    made = Assembly(target=Target(2.0), bounds=Bounds(2, 11), cores_per_executor=4)
    assert [whatif_answer._first_cores(cores, made) for cores in (1, 6, 30)] == [4, 4, 8]


def test_a_run_that_is_all_warm_up_is_refused(tmp_path: Path, ask) -> None:
    run = simulate(world(seconds=18.0, prompt=False), controller(2.0))
    code, heard = ask(write(tmp_path, run.records))
    assert code == 2
    assert "give a shorter --warm-up" in " ".join(heard.split())
    code, said = ask(str(tmp_path), "--json", "--seeds", "1", "--warm-up", "0s")
    assert code == 0 and json.loads(said)["real"]["within_target"] > 0.0


def test_a_policy_may_need_the_target_that_comes_with_it(checkpoint: str, ask) -> None:
    words = ("--policy", "drs(t_min=3s)", "--target", "5s")
    code, said = ask(checkpoint, "--json", "--seeds", "1", *words)
    assert code == 0
    assert json.loads(said)["asked"] == "a target of 5 s, policy drs(t_min=3 s)"


def test_records_without_the_options_of_the_run_are_said(tmp_path: Path, records, ask) -> None:
    where = write(tmp_path, [dataclasses.replace(one, assembly=None) for one in records])
    code, heard = ask(where, "--json", "--seeds", "1")
    assert code == 2 and "give its bounds with --cores" in " ".join(heard.split())
    later = dataclasses.replace(records[40], assembly=records[0].assembly)
    told = write(tmp_path / "told", [*records[1:40], later, *records[41:]])
    code, said = ask(told, "--json", "--seeds", "1")
    assert code == 0 and json.loads(said)["asked"] == "nothing changed"


def test_the_oracle_of_several_segments_is_called_an_estimate(tmp_path: Path, ask) -> None:
    segments = (
        SimulatedSegment(name="main", fixed_s=0.2, stages=(Stage(name="a", work_s=5e-4),)),
        SimulatedSegment(
            name="cut", fixed_s=0.1, stages=(Stage(name="b", work_s=1e-3),), after="main"
        ),
    )
    both = World(segments=segments, profile=constant(800.0), seconds=60.0, cores=4, prompt=False)
    where = write(tmp_path, simulate(both, controller(3.0)).records)
    code, said = ask(where, "--json", "--seeds", "1")
    assert code == 0 and json.loads(said)["oracle_estimated"] is True
    code, said = ask(where, "--seeds", "1")
    assert code == 0 and "oracle, about" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--load", "more"), "--load more: write a factor above 0"),
        (("--cores", "²"), "--cores ²: write FEWEST:MOST"),
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


def test_a_file_that_has_no_records_is_refused(tmp_path: Path, ask) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("nothing\nof the kind\n")
    code, heard = ask(str(other))
    assert code == 2
    assert "has no record that can be read" in " ".join(heard.split())
