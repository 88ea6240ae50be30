"""Figure 6: the throughput of the eight applications on numbers of cores, measured on Spark.

Each is calibrated as in IV-B: a source that is always full, samples until they converge, both
curves fitted and one chosen. The backtests' curves, which are modelled after the paper's drawings,
are shown beside the measured ones.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.apps.capacity.application_flow import application_flow
from tidegate.apps.capacity.calibrate import CalibrationStep, calibrate
from tidegate.apps.capacity.calibration import CapacityCalibration
from tidegate.benching import Aim, at_most
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.models.capacity.calibration_plan import CalibrationPlan
from tidegate.models.capacity.curves import FitRefused, fit
from tidegate.models.capacity.shapes import Shape
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.papers.mst.capacity_files import keep_capacity
from tidegate.papers.mst.curve_shape import exponent, modelled
from tidegate.papers.mst.spark_applications import CATALOGUE, asked_apps
from tidegate.papers.sessions import spark_on
from tidegate.view.pages.paper import Curve, Picture

PLAN = CalibrationPlan(
    counts=(1, 2, 4, 8, 12), checks=(3, 6), repeats=1, validations=0, batch_s=1.5, most_samples=10
)
WARM_UP = CalibrationPlan(counts=(4,), repeats=1, validations=0, batch_s=1.0, most_samples=6)
QUICK_PLAN = CalibrationPlan(
    counts=(1, 2, 3, 4, 6), repeats=1, validations=0, batch_s=1.0, most_samples=8
)
QUICK_APPS = ("grep",)
MASTER = f"local[{PLAN.largest + 2}]"
"""Two more than the tasks, for the source."""
PACES = {"unique-visitor": 0.25, "page-view": 0.25, "rolling-hashtag-count": 0.5}
"""Further stretched than usual: two real cores cannot move the rows of twelve otherwise."""
RATES = {"rolling-flight-distances": "constant:20"}
"""Rows in a second of event time. All distances are computed when a window closes, so a batch needs
many windows to be like the next one. Fewer aircraft, with as many reports each as usual."""
EXTRA = {"vht": {"delay": "1000000"}, "rolling-flight-distances": {"aircraft": "80"}}
"""A source that is always full hands out instances faster than answers come back by the loop. With
the usual delay VHT's model would hold most of them back, and they would count as done."""
DOES_NOT_SCALE = "vht"
EQUATIONS = {Shape.MODEL_1: "eq. 2", Shape.MODEL_2: "eq. 3"}
APP_OPTION = {"app": "measure only this application, such as grep or vht"}


@dataclass(frozen=True, slots=True)
class MeasuredCurve:
    """What was measured of an application, and the curve that was fitted to it."""

    name: str
    rates: Mapping[int, float]
    """Rows per second by number of cores, the checks included."""
    fitted: Mapping[str, Mapping[int, float]]
    """The same by eq. 2 and eq. 3, for every number of cores; one that was refused is not here."""
    chosen: str
    """Which of them was chosen, and why."""
    off: Mapping[int, float]
    """By how much the prediction at each check is off, as a share of what was measured."""
    unconverged: int
    """Measurements that ended before they had converged."""

    @property
    def exponent(self) -> float:
        """The p of tau = c m^p."""
        return exponent(self.rates)

    @property
    def modelled_exponent(self) -> float:
        """That of the modelled curve, over the same numbers of machines."""
        return exponent(modelled(self.name, list(self.rates)))


def figure_6(asked: Asked) -> Findings:
    """Measure the eight applications, or the one that the option `app` names."""
    names = asked_apps(asked.extra, QUICK_APPS if asked.quick else tuple(CATALOGUE))
    plan = QUICK_PLAN if asked.quick else PLAN
    flows = {
        name: application_flow(
            CATALOGUE[name],
            stretch=True,
            pace=PACES.get(name, 1.0),
            rate=RATES.get(name),
            extra=EXTRA.get(name),
        )
        for name in names
    }
    found: list[MeasuredCurve] = []
    failed: list[str] = []
    with spark_on(MASTER) as spark:
        if not asked.quick:
            asked.progress.doing("warming up: the first measurements of a session are slow")
            calibrate(spark, next(iter(flows.values())), WARM_UP)
        asked.progress.expect(len(flows))
        for name, flow in flows.items():
            asked.progress.step(name)
            try:
                done = calibrate(spark, flow, plan, on_step=_teller(name, asked))
            except TidegateError as error:
                # The others took minutes: what they showed is told all the same.
                failed.append(f"{name} could not be measured: {error}")
                asked.say(failed[-1])
                continue
            if not asked.quick:
                asked.say(f"{name}: kept as {keep_capacity(name, done.measured)}")
            found.append(measured_curve(name, done))
            if done.interrupted:
                break
    if not found:
        raise TidegateError("; ".join(failed))
    return told(found, plan.batch_s, failed)


def _teller(name: str, asked: Asked) -> Callable[[CalibrationStep], None]:
    def tell(step: CalibrationStep) -> None:
        asked.progress.within(step.done / step.total)
        asked.progress.doing(f"{name}: {step.cores} cores")

    return tell


def measured_curve(name: str, done: CapacityCalibration) -> MeasuredCurve:
    """What a calibration says of an application."""
    largest = done.plan.largest
    samples = [(one.cores, one.rows_per_s) for one in done.runs if one.use != "check"]
    return MeasuredCurve(
        name=name,
        rates=done.rates,
        fitted=fitted(samples, largest),
        chosen=done.fit().reason,
        off={one.cores: one.error for one in done.checks},
        unconverged=sum(not one.converged for one in done.runs),
    )


def fitted(samples: list[tuple[int, float]], largest: int) -> dict[str, dict[int, float]]:
    """Both curves at 1, 2, ... cores; a curve that turns negative or bends back is refused."""
    cores = np.arange(1, largest + 1)
    found = {}
    for shape, equation in EQUATIONS.items():
        try:
            mean = fit(samples, shape, largest).mean(cores)
        except (FitRefused, AskedWrongly):
            continue
        found[equation] = dict(zip(cores.tolist(), mean.tolist(), strict=True))
    return found


def told(found: list[MeasuredCurve], batch_s: float, failed: Sequence[str] = ()) -> Findings:
    """The table, the aims and a chart for each application."""
    return Findings(
        compared=tuple(row for one in found for row in _rows(one)),
        aims=(
            *_aims(found),
            at_most("applications that could not be measured", len(failed), 0),
        ),
        pictures=tuple(map(_picture, found)),
        notes=(
            "The paper draws its curves for up to 128 machines and prints none of their values."
            " So the modelled curves stand for it: they reach the printed peaks and have the drawn"
            " shapes.",
            "The exponent is the p of tau = c m^p: 1 is linear scaling, 0 is none. A task is a core"
            " that waits, on a machine with two.",
            f"A sample is a micro-batch of about {batch_s:g} s, with its planning and commit. These"
            " take longer with more tasks, so the measured curves bend.",
            *(
                f"{one.name}: operators take {1 / PACES[one.name]:g} times the usual time per row,"
                " because two real cores cannot move more rows."
                for one in found
                if one.name in PACES
            ),
            *failed,
        ),
    )


def _rows(one: MeasuredCurve) -> list[Compared]:
    cores = ", ".join(map(str, one.rates))
    rates = ", ".join(f"{rate:,.0f}" for rate in one.rates.values())
    rows = [
        Compared(f"{one.name}: rows/s on {cores} cores", None, rates),
        Compared(f"{one.name}: chosen curve", None, one.chosen),
        Compared(
            f"{one.name}: exponent, and that of the modelled curve",
            "does not scale" if one.name == DOES_NOT_SCALE else None,
            f"{one.exponent:.2f}, {one.modelled_exponent:.2f}",
        ),
    ]
    for count, off in one.off.items():
        rows.append(
            Compared(
                f"{one.name}: prediction for {count} cores, off by", None, f"{100 * off:+.1f} %"
            )
        )
    return rows


def _aims(found: list[MeasuredCurve]) -> list[Aim]:
    off = [abs(share) for one in found for share in one.off.values()]
    still = [one.exponent for one in found if one.name == DOES_NOT_SCALE]
    apart = [
        abs(one.exponent - one.modelled_exponent) for one in found if one.name != DOES_NOT_SCALE
    ]
    return [
        *([at_most("prediction off, as a share, largest", max(off), 0.1)] if off else []),
        at_most("measurements that did not converge", sum(one.unconverged for one in found), 0),
        *([at_most("exponent of VHT, which does not scale", max(still), 0.2)] if still else []),
        *(
            [at_most("exponents, measured from modelled, largest difference", max(apart), 0.25)]
            if apart
            else []
        ),
    ]


def _picture(one: MeasuredCurve) -> Picture:
    """The modelled curve is scaled to the measurement on the fewest cores: its unit is MB/s."""
    cores = list(range(1, max(one.rates) + 1))
    shape = modelled(one.name, cores)
    fewest = min(one.rates)
    scale = one.rates[fewest] / shape[fewest]
    return Picture(
        one.name,
        "cores",
        "rows per second",
        (
            Curve("measured", tuple(map(float, one.rates)), tuple(one.rates.values())),
            *(
                Curve(equation, tuple(map(float, curve)), tuple(curve.values()), marked=False)
                for equation, curve in one.fitted.items()
            ),
            Curve(
                "modelled after the drawing",
                tuple(map(float, cores)),
                tuple(scale * shape[count] for count in cores),
                paper=True,
                marked=False,
            ),
        ),
    )
