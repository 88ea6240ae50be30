"""Figure 6: what is made of measured throughputs."""

import pytest

from tidegate.apps.capacity.calibration import CapacityCalibration, CountMeasured, Use
from tidegate.errors import AskedWrongly
from tidegate.papers.figure import Asked
from tidegate.papers.mst import measured_curves
from tidegate.papers.mst.curve_shape import exponent, modelled
from tidegate.papers.mst.measured_curves import PLAN, MeasuredCurve, measured_curve, told


def run(cores: int, rows_per_s: float, use: Use = "fit") -> CountMeasured:
    return CountMeasured(
        cores=cores,
        repeat=1,
        use=use,
        samples=(rows_per_s,) * 6,
        converged=use == "fit",
        rows_per_s=rows_per_s,
        batch_rows=1000,
        batch_s=2.0,
        overhead_s=0.2,
        seconds=15.0,
    )


def saturating(cores: int) -> float:
    """A curve of eq. 2: 1 / (w0 + w1 / m)."""
    return 1.0 / (2e-5 + 5e-4 / cores)


def calibration() -> CapacityCalibration:
    runs = [run(cores, saturating(cores)) for cores in PLAN.counts]
    return CapacityCalibration(
        name="grep", plan=PLAN, runs=(*runs, run(6, 1.05 * saturating(6), "check")), stretched=True
    )


def curve(name: str, power: float, off: float = 0.02, unconverged: int = 0) -> MeasuredCurve:
    rates = {cores: 1000.0 * cores**power for cores in (1, 2, 4, 8)}
    return MeasuredCurve(name, rates, {"eq. 2": rates}, "model 1: smaller", {6: off}, unconverged)


def test_the_exponent_says_how_a_curve_scales() -> None:
    assert exponent({1: 5.0, 2: 10.0, 8: 40.0}) == pytest.approx(1.0)
    assert exponent({1: 7.0, 4: 14.0}) == pytest.approx(0.5)
    assert exponent(modelled("vht", [1, 4, 16])) == pytest.approx(0.0, abs=1e-9)
    assert exponent(modelled("rolling-count", [1, 4, 16])) == pytest.approx(0.88, abs=1e-6)


def test_a_calibration_becomes_a_curve() -> None:
    found = measured_curve("grep", calibration())
    assert list(found.rates) == [1, 2, 4, 6, 8, 12], "the check is shown as well"
    assert found.chosen.startswith("model 1")
    assert found.fitted["eq. 2"][4] == pytest.approx(saturating(4), rel=0.01)
    assert found.off[6] == pytest.approx(1 / 1.05 - 1.0, abs=0.01)
    assert found.unconverged == 1
    assert 0.5 < found.exponent < 1.0


def test_a_curve_that_cannot_be_fitted_is_left_out() -> None:
    assert measured_curves.fitted([(1, 10.0), (2, 20.0)], 4) == {}


def test_curves_are_told_beside_the_modelled_ones() -> None:
    found = told([curve("grep", 0.95), curve("vht", 0.05), curve("page-view", 0.8)], 1.5)
    assert all(aim.met for aim in found.aims)
    rows = {one.name: one for one in found.compared}
    assert rows["vht: exponent, and that of the modelled curve"].paper == "does not scale"
    assert rows["grep: prediction for 6 cores, off by"].ours == "+2.0 %"
    assert "4 times the usual time" in found.notes[-1], "page-view is stretched further"
    measured, _, drawn = found.pictures[0].lines
    assert drawn.y[0] == pytest.approx(measured.y[0]), "scaled to the fewest cores"
    assert drawn.paper and not measured.paper


def test_what_goes_wrong_misses_its_aim() -> None:
    found = told(
        [curve("grep", 0.4, off=-0.3, unconverged=2), curve("vht", 0.6)],
        1.5,
        ["flights could not be measured: x"],
    )
    assert [aim.met for aim in found.aims] == [False] * 5
    assert found.notes[-1] == "flights could not be measured: x"


def test_an_unknown_application_is_refused_before_spark_starts() -> None:
    with pytest.raises(AskedWrongly, match="app=sse"):
        measured_curves.figure_6(Asked(extra={"app": "sse"}))
