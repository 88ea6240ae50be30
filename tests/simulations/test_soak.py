"""What `tidegate bench soak` makes of a long run, of which the loop remembers the end alone."""

from benchmarks.soak import Sample, judged

from tests.helpers.pipeline_worlds import BOUNDS, controller, world
from tidegate.benching import Options
from tidegate.control.assembly import Assembly
from tidegate.control.target import Target
from tidegate.sim.microbatch.pipeline import simulate

SAMPLES = [Sample(float(at), 100, 100, 100, 100, 1) for at in range(0, 100, 5)]
ASSEMBLY = Assembly(target=Target(2.0), bounds=BOUNDS)


def test_a_run_whose_first_records_are_forgotten_is_judged() -> None:
    run = simulate(world(prompt=False, latency_window_s=3.0), controller(2.0))
    records = list(run.records[30:])
    assert records[0].assembly is None
    said: list[str] = []
    found = judged(records, ASSEMBLY, SAMPLES, Options(say=said.append))
    names = {aim.name: aim for aim in found.aims}
    assert names["the oracle's seconds within target"].met
    assert "whatif: points off" in names
    assert "core-seconds, whatif" in [row["what"] for row in found.results]


def test_what_was_measured_is_told_even_if_the_run_cannot_be_simulated() -> None:
    run = simulate(world(prompt=False, latency_window_s=3.0), controller(2.0))
    said: list[str] = []
    found = judged(list(run.records[-3:]), ASSEMBLY, SAMPLES, Options(say=said.append))
    assert "reversals" in [row["what"] for row in found.results]
    assert [aim.met for aim in found.aims if aim.name == "the run can be simulated"] == [False]
    assert "cannot be simulated" in said[-1]
