"""Figure 7: how latencies are distributed with 200 queries, by our measure and by the paper's."""

from collections.abc import Sequence

from tidegate.apps.planetlab.ages import AgeCounts
from tidegate.apps.planetlab.outcome import Planetlab
from tidegate.papers.figure import Compared
from tidegate.papers.overload.runs import QueryRun
from tidegate.view.pages.paper import Curve, Picture

PERCENTS = (0.1, *range(1, 100), 99.9)
_MEASURES = {
    "every row": "of rows, each from its own arrival",
    "oldest new row": "of results, by the oldest row that a batch added to them",
    "oldest row": "of results, by the oldest row of all in them",
}
"""Ours, the paper's as its targets allow it, and the paper's by the letter."""

Found = Sequence[tuple[QueryRun, Planetlab]]


def _ages(one: Planetlab) -> tuple[AgeCounts, AgeCounts, AgeCounts]:
    return one.ages.rows, one.ages.newest_part, one.ages.oldest


def distribution_rows(found: Found) -> list[Compared]:
    """Mean and percentiles by each measure; the paper prints that its means are at the targets."""
    rows = []
    for case, one in found:
        for name, ages in zip(_MEASURES, _ages(one), strict=True):
            at = ", ".join(f"p{p} {ages.percentile_s(p):.2f}" for p in (5, 50, 95, 99))
            theirs = f"mean about {case.target_s:g} s" if name == "oldest new row" else None
            rows.append(
                Compared(
                    f"{case.words}: latency by {name}", theirs, f"mean {ages.mean_s:.2f} s, {at}"
                )
            )
    if len(found) > 1:
        spreads = "; ".join(f"{case.target_s:g} s: {spread_s(one):.2f} s" for case, one in found)
        theirs = "grows with the target"
        rows.append(Compared("latency of rows, p95 less p5, by target", theirs, spreads))
    return rows


def spread_s(one: Planetlab) -> float:
    """From the 5th to the 95th percentile of the latency of rows."""
    return one.ages.rows.percentile_s(95) - one.ages.rows.percentile_s(5)


def distribution_pictures(found: Found) -> list[Picture]:
    """One picture for each measure, with a line for each target."""
    pictures = []
    for place, (name, words) in enumerate(_MEASURES.items()):
        lines = tuple(
            Curve(f"target {case.target_s:g} s", *_ages(one)[place].cdf(PERCENTS))
            for case, one in found
        )
        if lines:
            title = f"Distribution of latencies {words} (figure 7, {name})"
            pictures.append(Picture(title, "seconds", "share", lines))
    return pictures
