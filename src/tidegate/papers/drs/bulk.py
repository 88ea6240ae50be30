"""Figure 10: arrivals in bulk, and which of the two models comes closer to what is measured.

In the paper, features come in bulk from the extractor to the matcher, and GI/G/k accounts for it by
a high scv of arrivals. On Spark every operator behind a cut gets its rows in bulk, a micro-batch at
a time. But a batch is large because it was long in coming, so in the long run its rows vary less
than single ones would: the measured scv is below 1, and GI/G/k expects less waiting than M/M/k.
What rows wait for here is the next batch, which the micro-batch model knows. A frame is one row
throughout, so the bulks are those of Spark, not those of the paper's features.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.apps.catalogue import application
from tidegate.apps.run_application import ApplicationRun
from tidegate.benching import Aim, at_least, at_most
from tidegate.control.record import Record
from tidegate.papers.application_runs import wrong_answers
from tidegate.papers.drs.runs import Wanted, gently, papers_session, run, warm_up
from tidegate.papers.drs.six_splits import SETTLED_S
from tidegate.papers.estimate import MicroBatchEstimate
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.papers.measured import Sojourns, after, mean_rate, queues_of
from tidegate.papers.splits import shown
from tidegate.view.pages.paper import Curve, Picture
from tidegate.workload.parse import parse_profile

SPLITS = ((2, 4, 1), (3, 3, 1))
"""The paper's two best splits of K_max = 7."""
PREFERRED = {"measured": "2:4:1", "M/M/k": "3:3:1", "GI/G/k": "2:4:1"}
"""The split that the paper found to be the better one, and the one that each of its models says."""
LOADS = {5.0: "uniform:2,8", 6.0: "uniform:3,9"}
"""Frames per second, and the profile: a rate is drawn for every second, between the inverses of the
longest and the shortest gap that the paper has between two frames."""
PACE = 2.0
"""Operators are this much faster than `tidegate app --stretch` has them, so that 7 cores serve 6
frames per second; in figure 6 they are 1.5 times as fast."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One split under one load: what was measured, and what the models say."""

    rate: float
    split: tuple[int, ...]
    measured_s: float
    mmk_s: float
    gigk_s: float
    micro_batch_s: float


def figure_10(asked: Asked) -> Findings:
    """Both loads with both splits."""
    app = application("vld")
    seconds = 45.0 if asked.quick else 70.0
    ran: dict[tuple[float, tuple[int, int, int]], ApplicationRun] = {}
    with papers_session("drs") as spark:
        warm_up(spark, app)
        asked.progress.expect(len(LOADS) * len(SPLITS))
        for rate, profile in LOADS.items():
            for split in SPLITS:
                asked.progress.step(f"vld: {shown(split)} at {rate:g} frames/s")
                ran[rate, split] = run(
                    spark,
                    Wanted(
                        app=app,
                        split=split,
                        seconds=seconds,
                        rate=gently(parse_profile(profile), seconds),
                        pace=PACE,
                        cores=sum(split),
                    ),
                )
    bars = []
    for (rate, split), one in ran.items():
        # Predicted from the runs with the other split, as a user would ask before a change.
        others = {key: other for key, other in ran.items() if key[1] != split}
        near = sorted(others, key=lambda key: abs(key[0] - rate))
        estimate = MicroBatchEstimate([_settled(others[key]) for key in reversed(near)])
        expected_s = estimate.of_split(split, mean_rate([r.measurement for r in _settled(one)]))
        bars.append(_bar(one, rate, split, app.operators, expected_s))
    return told(bars, wrong_answers([*ran.values()]))


def _settled(ran: ApplicationRun) -> list[Record]:
    return after(ran.records, SETTLED_S, ran.seconds)


def _bar(
    ran: ApplicationRun,
    rate: float,
    split: tuple[int, ...],
    operators: tuple[str, ...],
    micro_batch_s: float,
) -> Bar:
    records = _settled(ran)
    return Bar(
        rate=rate,
        split=split,
        measured_s=Sojourns.of(records).mean_s,
        mmk_s=float(queues_of([records], operators, "mmk").network_latency(split)),
        gigk_s=float(queues_of([records], operators, "gigk").network_latency(split)),
        micro_batch_s=micro_batch_s,
    )


def told(bars: Sequence[Bar], wrong: Sequence[str] = ()) -> Findings:
    """Each bar, and how far each model is off."""
    compared = [
        Compared(
            f"{shown(one.split)} at {one.rate:g}/s: measured; M/M/k; GI/G/k; micro-batch model",
            None,
            f"{1000 * one.measured_s:.0f}; {1000 * one.mmk_s:.0f}; {1000 * one.gigk_s:.0f};"
            f" {1000 * one.micro_batch_s:.0f} ms",
        )
        for one in bars
    ]
    compared += preferred(bars)
    compared.append(Compared("which of DRS's two models is closer", "GI/G/k", _closer(bars)))
    return Findings(
        compared=tuple(compared),
        aims=_aims(bars, wrong),
        pictures=tuple(_picture(bars, rate) for rate in dict.fromkeys(one.rate for one in bars)),
        notes=(
            "What both of DRS's models leave out is a micro-batch's fixed cost, which is most of"
            " the sojourn here; in Storm it is the network's transfer.",
            *wrong,
        ),
    )


def preferred(bars: Sequence[Bar]) -> list[Compared]:
    """Under each load the split with the shortest sojourn, as measured and by each model."""
    rows = []
    for rate in dict.fromkeys(one.rate for one in bars):
        mine = [one for one in bars if one.rate == rate]
        if len(mine) < 2:
            continue  # one split alone is not preferred to any other
        best = {
            "measured": min(mine, key=lambda one: one.measured_s),
            "M/M/k": min(mine, key=lambda one: one.mmk_s),
            "GI/G/k": min(mine, key=lambda one: one.gigk_s),
            "micro-batch model": min(mine, key=lambda one: one.micro_batch_s),
        }
        rows += [
            Compared(f"better split at {rate:g}/s: {by}", PREFERRED.get(by), shown(one.split))
            for by, one in best.items()
        ]
    return rows


def off(modelled_s: float, measured_s: float) -> float:
    """How far a model is off, as a share of what was measured."""
    return abs(modelled_s - measured_s) / measured_s


def _closer(bars: Sequence[Bar]) -> str:
    closer = sum(off(one.gigk_s, one.measured_s) < off(one.mmk_s, one.measured_s) for one in bars)
    return f"GI/G/k in {closer} of {len(bars)}"


def _aims(bars: Sequence[Bar], wrong: Sequence[str]) -> tuple[Aim, ...]:
    worst = max(off(one.micro_batch_s, one.measured_s) for one in bars)
    ahead = sum(
        off(one.micro_batch_s, one.measured_s)
        < min(off(one.mmk_s, one.measured_s), off(one.gigk_s, one.measured_s))
        for one in bars
    )
    return (
        at_least("bars where the micro-batch model is closer than both", ahead, len(bars)),
        at_most("micro-batch model, worst error", worst, 0.2),
        at_most("runs with wrong answers", len(wrong), 0),
    )


def _picture(bars: Sequence[Bar], rate: float) -> Picture:
    mine = [one for one in bars if one.rate == rate]
    names = tuple(shown(one.split) for one in mine)
    return Picture(
        f"vld at {rate:g} frames/s, K_max = 7 (figure 10)",
        "split",
        "seconds",
        (
            Curve("measured", names, tuple(one.measured_s for one in mine)),
            Curve("M/M/k", names, tuple(one.mmk_s for one in mine)),
            Curve("GI/G/k", names, tuple(one.gigk_s for one in mine)),
            Curve("micro-batch model", names, tuple(one.micro_batch_s for one in mine)),
        ),
    )
