"""What figures 6 and 7 show: sojourns by split, measured and modelled, and how well they agree."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidegate.benching import Aim, at_least, at_most
from tidegate.papers.drs.runs import K_MAX
from tidegate.papers.figure import Compared, Findings
from tidegate.papers.measured import Sojourns
from tidegate.papers.splits import shown
from tidegate.view.pages.paper import Curve, Picture

Split = tuple[int, ...]

PAPERS_SPLIT: dict[str, Split] = {"vld": (10, 11, 1), "fpd": (6, 13, 3)}
"""The splits that DRS recommended, which were measured to be the best."""
NEAR = 1.05
"""A recommended split counts as the best if it is within this factor of it."""
APART = 1.1
"""Two runs of one split differ by up to a tenth. So splits are ranked that are expected to differ
by at least this factor."""

ALIKE = "positively correlated"
"""What the paper says of figure 7. It prints no coefficient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSojourns:
    """What the runs of one application measured, and what the models say of the same splits."""

    app: str
    measured: dict[Split, Sojourns]
    modelled_s: dict[Split, float]
    """E[T] by the micro-batch model, for each split learned from the runs of all others."""
    recommended: Split
    """By the model that was learned from all runs."""
    by_drs: dict[str, Split]
    """DRS's recommendation by model, from the same measurements."""
    by_drs_s: dict[Split, float]
    """E[T] by DRS's M/M/k model."""
    uncut: Sojourns
    first: Split | None = None
    """What it recommended before the neighbours had run; None: the same."""
    again: Mapping[Split, Sojourns] = field(default_factory=dict)
    """Further runs of the recommended split and of the best one, where these are two."""
    wrong: tuple[str, ...] = ()

    @property
    def best(self) -> Split:
        """The split that was measured to be the best."""
        return min(self.measured, key=lambda split: self.measured[split].mean_s)

    @property
    def steadiest(self) -> Split:
        """The split whose sojourn was measured to vary the least from tick to tick."""
        return min(self.measured, key=lambda split: self.measured[split].deviation_s)

    @property
    def apart(self) -> list[Split]:
        """The recommended split, and from there on those that are clearly slower by the model."""
        ranked = sorted(self.measured, key=lambda split: self.modelled_s[split])
        found = [split for split in (self.recommended,) if split in self.measured] or ranked[:1]
        for split in ranked:
            if self.modelled_s[split] >= APART * self.modelled_s[found[-1]]:
                found.append(split)
        return found

    def alike(self, splits: Sequence[Split]) -> float:
        """Spearman's rank correlation of the model with the measurement."""
        return spearman(
            [self.modelled_s[split] for split in splits],
            [self.measured[split].mean_s for split in splits],
        )

    @property
    def off(self) -> float:
        """The recommended split's sojourn over the best one's.

        The best of many is partly lucky, so further runs of the two count instead where there are
        any.
        """
        if self.recommended not in self.measured:
            return math.inf
        among = self.again or self.measured
        return among[self.recommended].mean_s / min(one.mean_s for one in among.values())


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """The rank correlation of two series; not a number below three points."""
    # Imported here because scipy.stats takes a second to import, and `tidegate paper` lists first.
    from scipy.stats import spearmanr

    if len(one) < 3:
        return math.nan
    # Rounded, so that the 0.9 of two neighbours in five that changed places is not below 0.9.
    return round(float(spearmanr(one, other).statistic), 12)


def told(found: Sequence[SplitSojourns]) -> Findings:
    """The outcome of both figures."""
    return Findings(
        compared=tuple(line for one in found for line in _compared(one)),
        aims=tuple(aim for one in found for aim in _aims(one)),
        pictures=tuple(picture for one in found for picture in _pictures(one)),
        notes=tuple(fault for one in found for fault in one.wrong),
    )


def _compared(one: SplitSojourns) -> list[Compared]:
    theirs = shown(PAPERS_SPLIT[one.app])
    lines = [
        Compared(f"{one.app}: recommended split", theirs, shown(one.recommended)),
        *(
            [Compared(f"{one.app}: recommended before its neighbours ran", None, shown(one.first))]
            if one.first not in (None, one.recommended)
            else []
        ),
        Compared(f"{one.app}: best split as measured", theirs, shown(one.best)),
        Compared(f"{one.app}: split with the least deviation", theirs, shown(one.steadiest)),
    ]
    for model, split in one.by_drs.items():
        lines.append(
            Compared(
                f"{one.app}: DRS's {model} on our measurements recommends", theirs, shown(split)
            )
        )
    for split, sojourns in one.measured.items():
        mark = " *" if split == one.recommended else ""
        lines.append(
            Compared(
                f"{one.app} {shown(split)}{mark}: sojourn, its deviation from tick to tick;"
                " micro-batch model; M/M/k",
                None,
                f"{1000 * sojourns.mean_s:.0f}, {1000 * sojourns.deviation_s:.0f};"
                f" {1000 * one.modelled_s[split]:.0f}; {1000 * one.by_drs_s[split]:.0f} ms",
            )
        )
    for split, sojourns in one.again.items():
        lines.append(
            Compared(
                f"{one.app} {shown(split)}: sojourn in the further runs of the best two",
                None,
                f"{1000 * sojourns.mean_s:.0f} ms",
            )
        )
    every = one.alike(list(one.measured))
    lines.append(
        Compared(f"{one.app}: rank correlation over all {len(one.measured)} splits", ALIKE, every)
    )
    lines.append(
        Compared(
            f"{one.app} without cuts: sojourn, its deviation from tick to tick",
            None,
            f"{1000 * one.uncut.mean_s:.0f}, {1000 * one.uncut.deviation_s:.0f} ms",
        )
    )
    return lines


def _aims(one: SplitSojourns) -> list[Aim]:
    return [
        at_most(f"{one.app}: recommended split over the best of its neighbourhood", one.off, NEAR),
        at_least(
            f"{one.app}: rank correlation over {len(one.apart)} splits that are 10 % apart",
            one.alike(one.apart),
            0.9,
        ),
        at_least(
            f"{one.app}: sojourn of the best split over that without cuts",
            one.measured[one.best].mean_s / one.uncut.mean_s,
            1.0,
        ),
        at_most(f"{one.app}: runs with wrong answers", len(one.wrong), 0),
    ]


def _pictures(one: SplitSojourns) -> list[Picture]:
    splits = sorted(one.measured)
    names = tuple(shown(split) for split in splits)
    measured = tuple(one.measured[split].mean_s for split in splits)
    modelled = tuple(one.modelled_s[split] for split in splits)
    return [
        Picture(
            f"{one.app}: total sojourn by split (figure 6)",
            f"split of {K_MAX} cores",
            "seconds",
            (
                Curve("measured", names, measured),
                Curve("deviation", names, tuple(one.measured[s].deviation_s for s in splits)),
                Curve("micro-batch model", names, modelled),
            ),
            marks=(shown(one.recommended),),
        ),
        Picture(
            f"{one.app}: measured against modelled sojourn (figure 7)",
            "modelled, seconds",
            "measured, seconds",
            (
                Curve("micro-batch model", *_sorted(modelled, measured)),
                Curve("M/M/k", *_sorted(tuple(one.by_drs_s[s] for s in splits), measured)),
            ),
        ),
    ]


def _sorted(
    modelled: tuple[float, ...], measured: tuple[float, ...]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    pairs = sorted(zip(modelled, measured, strict=True))
    return tuple(x for x, _ in pairs), tuple(y for _, y in pairs)
