"""`tidegate plan --capacity`: eq. 8 by brute force, and one sentence for what is asked wrongly."""

import json
import math
from pathlib import Path
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tidegate.cli import app
from tidegate.commands.plan_capacity import planned
from tidegate.errors import AskedWrongly
from tidegate.models.capacity.choice import choose
from tidegate.models.capacity.measured import CapacitySample, MeasuredCapacity
from tidegate.models.microbatch.batch_cost import BatchCost

SAMPLES = [(m, 100.0 * m**0.9 * (1 + e)) for m in (1, 2, 4, 8, 16) for e in (-0.03, 0.02)]
MEASURED = MeasuredCapacity(
    pipeline="ads", samples=tuple(CapacitySample(cores=m, rows_per_s=r) for m, r in SAMPLES)
)


@pytest.fixture
def file(tmp_path: Path) -> str:
    MEASURED.write(tmp_path / "capacity.json")
    return str(tmp_path / "capacity.json")


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["plan", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@given(rate=st.floats(20.0, 1000.0), qos=st.sampled_from([0.5, 0.9, 0.99]))
def test_the_cores_are_the_first_that_are_enough_with_the_probability(
    rate: float, qos: float
) -> None:
    curve = choose(SAMPLES, max_machines=64).model
    deviation = math.sqrt(curve.residual_variance)
    found = planned(MEASURED, rate=rate, cores=None, latency_s=math.inf, qos=qos)

    def chance(cores: int) -> float:
        return 1.0 - NormalDist(float(curve.mean(cores)), deviation).cdf(rate)

    assert chance(found.cores) >= qos - 1e-9
    assert found.cores == 1 or chance(found.cores - 1) < qos + 1e-9
    assert found.rows_per_s >= rate - 1e-6


def test_a_latency_leaves_less_than_cores_sustain_for_ever() -> None:
    cost = BatchCost(fixed_s=0.4, work_s=0.01)
    samples = tuple(
        CapacitySample(cores=k, rows_per_s=rows / cost.duration_s(rows, k), batch_s=1.0)
        for k in (1, 2, 4, 8, 16)
        for rows in (60 * k, 60 * k)
    )
    measured = MeasuredCapacity(pipeline="ads", samples=samples, fixed_s=0.4)
    held = planned(measured, rate=None, cores=4, latency_s=1.2, qos=0.5)
    ever = planned(measured, rate=None, cores=4, latency_s=math.inf, qos=0.5)
    assert held.rows_per_s == pytest.approx(cost.throughput(4, 1.2), rel=1e-3)
    assert ever.rows_per_s == pytest.approx(400.0, rel=1e-3)


@pytest.mark.parametrize("asked", [{"cores": 4, "rate": None}, {"cores": None, "rate": 100.0}])
def test_a_latency_that_no_batch_can_keep_is_not_promised(asked) -> None:
    samples = tuple(
        CapacitySample(cores=k, rows_per_s=50.0 * k, batch_s=2.0) for k in (1, 2, 4, 8, 16)
    )
    measured = MeasuredCapacity(pipeline="ads", samples=samples, fixed_s=0.4)
    with pytest.raises(AskedWrongly, match=r"--latency 1 ms: even without rows.* give 630 ms"):
        planned(measured, latency_s=0.001, qos=0.5, **asked)
    assert planned(measured, latency_s=0.64, qos=0.5, cores=4, rate=None).rows_per_s > 0.0


def test_the_command_prints_a_sentence_or_json(file: str) -> None:
    said = run("--capacity", file, "--rate", "500", "--latency", "2s")
    assert "cores:" in said and "within a mean latency of 2 s with probability 0.95" in said
    found = json.loads(run("--capacity", file, "--cores", "8", "--json"))
    assert found["cores"] == 8
    assert found["rows_per_s"] < found["expected_rows_per_s"]
    assert found["latency_ms"] is None


def test_a_rate_that_cannot_be_promised_is_said_and_not_negative(tmp_path: Path) -> None:
    """Two samples that differ by a factor of a hundred, and a probability of 99.9 %."""
    wild = [CapacitySample(cores=m, rows_per_s=r) for m in (1, 2) for r in (10.0, 1000.0)]
    MeasuredCapacity(pipeline="ads", samples=tuple(wild)).write(tmp_path / "wild.json")
    asked = ("--capacity", str(tmp_path / "wild.json"), "--cores", "1", "--qos", "0.999")
    assert json.loads(run(*asked, "--json"))["rows_per_s"] == 0.0
    said = " ".join(run(*asked).split())
    assert "vary too much to promise any rate" in said and "Measure more samples" in said


def test_a_file_of_overhead_is_refused_with_what_to_do() -> None:
    sample = CapacitySample(cores=1, rows_per_s=10.0, batch_s=0.3)
    overhead = MeasuredCapacity(pipeline="ads", samples=(sample,), fixed_s=0.29)
    with pytest.raises(AskedWrongly, match="hardly anything but overhead; measure larger ones"):
        planned(overhead, rate=None, cores=1, latency_s=math.inf, qos=0.9)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "plan needs --rate or --cores"),
        (("--rate", "5", "--cores", "2"), "give exactly one"),
        (("--rate", "0"), "above 0"),
        (("--rate", "1e9"), "no number of cores up to 64 sustains"),
        (("--cores", "65"), "give 1 to 64, or measure more"),
        (("--rate", "5", "--qos", "1"), "must be in"),
        (("net.toml", "--rate", "5"), "give one of them"),
    ],
)
def test_wrong_asks_are_refused(file: str, arguments: tuple[str, ...], says: str) -> None:
    with pytest.raises(AskedWrongly, match=says):
        run("--capacity", file, *arguments)


def test_without_a_file_it_says_what_to_give() -> None:
    with pytest.raises(AskedWrongly, match=r"give FILE\.toml, or --capacity FILE"):
        run("--cores", "3")
    with pytest.raises(AskedWrongly, match="--rate is for --capacity"):
        run("examples/vld.toml", "--rate", "3")
