"""What the paper prints of its policies: table III, and the few values of figure 7 in its text.

The figures themselves are drawings without numbers.
"""

from dataclasses import dataclass

from tidegate.control.capacity.mst import Techniques


@dataclass(frozen=True, slots=True)
class PrintedPolicy:
    """A row of table III, and what section V-B says of it."""

    techniques: Techniques
    equation: int
    """By which the number of machines is chosen."""
    qos: float | str | None = None
    """Per cent; a text where it is one of several."""
    over_truth: float | None = None
    over_peak: float | None = None


_ONE_ALONE = "73 to 81"
"""Each of the three techniques alone."""
PRINTED: dict[str, PrintedPolicy] = {
    "0:MST": PrintedPolicy(Techniques(False, False, False), 4, 52.0),
    "1:MST+UA": PrintedPolicy(Techniques(True, False, False), 8, _ONE_ALONE),
    "2:MST+OL": PrintedPolicy(Techniques(False, True, False), 4, _ONE_ALONE),
    "3:MST+UA+OL": PrintedPolicy(Techniques(True, True, False), 8),
    "4:MST;ARMA": PrintedPolicy(Techniques(False, False, True), 18, _ONE_ALONE),
    "5:MST+UA;ARMA": PrintedPolicy(Techniques(True, False, True), 21, 98.35, 1.99),
    "6:MST+OL;ARMA": PrintedPolicy(Techniques(False, True, True), 18),
    "7:MST+UA+OL;ARMA": PrintedPolicy(Techniques(True, True, True), 21, 98.62, 1.85, 0.52),
}
BEST = "7:MST+UA+OL;ARMA"
BEST_QOS, BEST_OVER_TRUTH, BEST_OVER_PEAK = 98.62, 1.85, 0.52
"""The paper's headline: QoS in per cent, and cost over the ground truth's and the static peak's."""


def used(techniques: Techniques) -> str:
    """The techniques in the paper's abbreviations."""
    names = {
        "UA": techniques.uncertainty,
        "OL": techniques.learning,
        "ARMA": techniques.forecast,
    }
    return ", ".join(name for name, on in names.items() if on) or "none"
