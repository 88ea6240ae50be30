"""`tidegate replay`: a recorded run decides alike again, and another policy beside it."""

import dataclasses
import json
import sys
from pathlib import Path

import pytest

from tests.helpers.pipeline_worlds import BOUNDS, controller, world
from tidegate import cli
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.latency.options import LatencyOptions
from tidegate.control.limits import Limits, excluded_periods
from tidegate.control.record import Record
from tidegate.control.shedding.classes import ClassWorth
from tidegate.control.target import Target
from tidegate.models.capacity.measured import CapacitySample, MeasuredCapacity
from tidegate.recording import RecordWriter
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.workload.profile import steps


@pytest.fixture(scope="module")
def records() -> tuple[Record, ...]:
    surge = world(steps([(0, 1000.0), (10, 4000.0)]), seconds=40.0)
    return simulate(surge, controller()).records


def write(directory: Path, records: tuple[Record, ...]) -> str:
    with RecordWriter(directory) as writer:
        for record in records:
            writer.write(record)
    return str(directory)


@pytest.fixture
def run(monkeypatch, capsys):
    def call(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["tidegate", "replay", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out if not ended.value.code else said.err

    return call


def test_a_run_is_decided_alike(tmp_path, records, run) -> None:
    code, said = run(write(tmp_path, records), "--json")
    assert code == 0
    assert json.loads(said)["runs"] == [{"ticks": 40, "same": 40, "differ": []}]
    assert any(record.acted for record in records)
    code, said = run(str(tmp_path))
    assert code == 0 and "40 ticks, 40 with the same decision" in said


@pytest.mark.parametrize("words", [("--policy", "static"), ("--target", "900ms")])
def test_other_options_are_shown_beside(tmp_path, records, run, words) -> None:
    code, said = run(write(tmp_path, records), "--json", *words)
    (found,) = json.loads(said)["runs"]
    assert code == 0 and found["differ"]
    one = found["differ"][0]
    assert one["recorded"] != one["replayed"] and one["replayed"]["reason"]
    code, said = run(str(tmp_path), *words)
    assert code == 0 and "Where they differ" in said


def test_a_policy_that_learns_nothing_takes_a_capacity_file(tmp_path, records, run) -> None:
    where = write(tmp_path / "ck", records)
    code, said = run(where, "--policy", "mst-1(cycle=2s)")
    assert code == 2 and "give a capacity file" in " ".join(said.split())
    samples = tuple(CapacitySample(cores=m, rows_per_s=800.0 * m) for m in (1, 2, 4, 8, 12))
    MeasuredCapacity(pipeline="held", samples=samples).write(tmp_path / "capacity.json")
    words = ("--policy", "mst-1(cycle=2s)", "--capacity", str(tmp_path / "capacity.json"))
    code, said = run(where, "--json", *words)
    asked = {one["replayed"]["cores"] for one in json.loads(said)["runs"][0]["differ"]}
    # Eq. 8 without any variance: six cores are the first whose 4,800 rows/s exceed 4,000.
    assert code == 0 and 6 in asked
    code, said = run(where, "--capacity", str(tmp_path / "none.json"))
    assert code == 2 and "no capacity file" in said


def test_every_run_of_a_checkpoint_has_its_own_controller(tmp_path, records, run) -> None:
    code, said = run(write(tmp_path, records + records), "--json")
    assert code == 0
    assert [(one["ticks"], one["same"]) for one in json.loads(said)["runs"]] == [(40, 40)] * 2


def test_a_run_whose_options_are_not_known_needs_bounds(tmp_path, records, run) -> None:
    bare = (dataclasses.replace(records[0], assembly=None), *records[1:])
    where = write(tmp_path, bare)
    code, said = run(where)
    assert code == 2 and "give its bounds with --cores" in said.replace("\n", " ")
    code, said = run(where, "--cores", f"{BOUNDS.least}:{BOUNDS.most}", "--json")
    assert code == 0 and json.loads(said)["runs"][0]["same"] == 40


@pytest.mark.parametrize("cores", ["x", "1:2:3", "4:2", "0:2"])
def test_wrong_bounds_are_refused(tmp_path, records, run, cores) -> None:
    code, said = run(write(tmp_path, records), "--cores", cores)
    assert code == 2 and f"--cores {cores}" in said


def test_an_assembly_survives_its_record() -> None:
    made = Assembly(
        target=Target(2.0, 95),
        bounds=Bounds(2, 9),
        policy="flow",
        latency=LatencyOptions(catch_up_s=3.0, surge_factor=1.5),
        limits=Limits(t_ra_s=7.0, excluded=excluded_periods(["09:00-10:00", "23:00-01:00"])),
        tick_s=0.5,
        cores_per_executor=2,
        cores=4,
        shed="feedback",
        classes={"gold": ClassWorth(priority=1, weight=2.0, floor=0.5)},
    )
    assert Assembly.of(json.loads(json.dumps(made.document()))) == made
