"""Figure 8: QoS and cost of policies 0, 1, 5 and 7 for each application, and ours beside them."""

from collections.abc import Mapping
from itertools import pairwise

from tidegate.benching import Aim, at_least, at_most
from tidegate.papers.figure import Compared, Findings
from tidegate.papers.mst.contenders import ON_SPARK, OURS, Contender, Scores, numbered
from tidegate.papers.mst.mean_and_deviation import Measures, with_error_bars
from tidegate.view.pages.paper import Curve, Picture

SHOWN = numbered(0, 1, 5, 7)
"""A technique is added from each to the next."""
DOES_NOT_SCALE = "vht"
"""Every policy has 100 % here, in the paper as well."""

Found = Mapping[tuple[str, Contender], Measures]
"""By application and contender."""


def by_application(scores: Scores) -> Findings:
    """The table, the aims and the charts of the runs that figure 8 shows."""
    shown = {one: runs for one, runs in scores.items() if one in (*SHOWN, *OURS, ON_SPARK)}
    apps = dict.fromkeys(score.app for runs in shown.values() for score in runs)
    found = {
        (app, one): Measures.of([score for score in runs if score.app == app])
        for app in apps
        for one, runs in shown.items()
    }
    return Findings(
        compared=tuple(_row(app, one, measures) for (app, one), measures in found.items()),
        aims=tuple(_aims(found)),
        pictures=(
            Picture("QoS by application (fig. 8)", "application", "%", _lines(found, qos=True)),
            Picture("Cost over the ground truth's (fig. 8)", "application", "times", _lines(found)),
        ),
    )


def _row(app: str, contender: Contender, measures: Measures) -> Compared:
    theirs = "100 %" if app == DOES_NOT_SCALE and contender in SHOWN else None
    ours = f"{measures.qos.shown(2)} % at {measures.over_truth.shown(3)}"
    return Compared(f"{app}, {contender.label}: QoS at cost / ground truth", theirs, ours)


def _aims(found: Found) -> list[Aim]:
    """Each step of the paper's four raises QoS; ours has the QoS of policy 7 for less."""
    apps = list(dict.fromkeys(app for app, _ in found))
    _, _, _, seven = SHOWN
    steps = [
        found[app, after].qos.mean - found[app, before].qos.mean
        for app in apps
        for before, after in pairwise(SHOWN)
    ]
    ratios = [
        found[app, OURS[-1]].over_truth.mean / found[app, seven].over_truth.mean for app in apps
    ]
    short = [found[app, OURS[-1]].qos.mean for app in apps]
    return [
        at_least("steps from 0 to 1 to 5 to 7: points of QoS, least", min(steps), -0.1),
        at_least(f"{OURS[-1].label}: QoS of the worst application", min(short), 98.5, "%"),
        at_most(f"{OURS[-1].label}: cost over policy 7's, highest", max(ratios), 1.0),
    ]


def _lines(found: Found, *, qos: bool = False) -> tuple[Curve, ...]:
    lines = []
    for contender in dict.fromkeys(one for _, one in found):
        mine = {
            app: measures.qos if qos else measures.over_truth
            for (app, one), measures in found.items()
            if one == contender
        }
        lines.append(with_error_bars(contender.label, mine))
    return tuple(lines)
