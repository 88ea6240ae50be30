"""Figure 7 and table III: QoS and cost of policies 0 to 7, averaged over applications and runs."""

from collections.abc import Mapping

from tidegate.benching import Aim, at_least, at_most
from tidegate.control.capacity.mst import TABLE_III
from tidegate.papers.figure import Compared, Findings
from tidegate.papers.mst.contenders import ON_SPARK, OURS, PAPERS, Contender
from tidegate.papers.mst.mean_and_deviation import Measures, with_error_bars
from tidegate.papers.mst.printed import (
    BEST,
    BEST_OVER_PEAK,
    BEST_OVER_TRUTH,
    BEST_QOS,
    PRINTED,
    used,
)
from tidegate.view.pages.paper import Curve, Picture

_ALONE = ("1:MST+UA", "2:MST+OL", "4:MST;ARMA")

Found = Mapping[Contender, Measures]


def averaged(found: Found) -> Findings:
    """The table, the aims and the charts of what was found."""
    return Findings(
        compared=tuple(row for one, measures in found.items() for row in _rows(one, measures)),
        aims=tuple(_aims(found)),
        pictures=(
            Picture("QoS satisfaction rate (fig. 7a)", "policy", "per cent", _qos_lines(found)),
            Picture("Relative cost (fig. 7b)", "policy", "times", _cost_lines(found)),
        ),
    )


def _rows(contender: Contender, measures: Measures) -> list[Compared]:
    name = contender.label
    printed = PRINTED.get(contender.policy)
    rows = []
    if printed is not None:
        ours = TABLE_III[contender.policy]
        rows.append(Compared(f"{name}: uses", used(printed.techniques), used(ours)))
    theirs = (
        (None, None, None)
        if printed is None
        else (printed.qos, printed.over_truth, printed.over_peak)
    )
    return [
        *rows,
        Compared(f"{name}: QoS, %", theirs[0], measures.qos.shown(2)),
        Compared(f"{name}: cost / ground truth", theirs[1], measures.over_truth.shown(3)),
        Compared(f"{name}: cost / static peak", theirs[2], measures.over_peak.shown(3)),
    ]


def _aims(found: Found) -> list[Aim]:
    by_policy = {one.policy: measures for one, measures in found.items() if one in PAPERS}
    base, best = by_policy["0:MST"].qos.mean, by_policy[BEST]
    other = sum(TABLE_III[name] != row.techniques for name, row in PRINTED.items())
    aims = [
        at_most("policies that use other techniques than in table III", other, 0),
        *(
            at_least(f"{name} over 0:MST, points of QoS", by_policy[name].qos.mean - base, 0)
            for name in _ALONE
        ),
        *_headline("policy 7", best),
    ]
    strict = found[OURS[-1]]
    aims += _headline(OURS[-1].label, strict)
    aims.append(
        at_most(
            f"cost of {OURS[-1].label} over policy 7's",
            strict.over_truth.mean / best.over_truth.mean,
            1.0,
        )
    )
    if ON_SPARK in found:
        aims += _headline(ON_SPARK.label, found[ON_SPARK])
    return aims


def _headline(name: str, measures: Measures) -> list[Aim]:
    """The paper's headline: 98.62 % QoS at 1.85 x the ground truth and 0.52 x the static peak."""
    return [
        at_least(f"{name}: QoS", measures.qos.mean, BEST_QOS, "%"),
        at_most(f"{name}: cost / ground truth", measures.over_truth.mean, BEST_OVER_TRUTH),
        at_most(f"{name}: cost / static peak", measures.over_peak.mean, BEST_OVER_PEAK),
    ]


def _qos_lines(found: Found) -> tuple[Curve, ...]:
    ours = {one.label: measures.qos for one, measures in found.items()}
    theirs = {name: row.qos for name, row in PRINTED.items()}
    return with_error_bars("ours", ours), _printed("printed", theirs)


def _cost_lines(found: Found) -> tuple[Curve, ...]:
    truth = {one.label: measures.over_truth for one, measures in found.items()}
    peak = {one.label: measures.over_peak for one, measures in found.items()}
    theirs = {name: row.over_truth for name, row in PRINTED.items()}
    return (
        with_error_bars("over ground truth", truth),
        with_error_bars("over static peak", peak),
        _printed("over ground truth", theirs),
    )


def _printed(name: str, values: Mapping[str, float | str | None]) -> Curve:
    """The paper's values, where it prints numbers."""
    known = {policy: value for policy, value in values.items() if isinstance(value, float)}
    return Curve(name, tuple(known), tuple(known.values()), paper=True)
