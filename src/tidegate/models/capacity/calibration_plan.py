"""What a calibration measures: numbers of cores, how often, and when a measurement is over."""

from dataclasses import dataclass, field

from tidegate.errors import AskedWrongly
from tidegate.models.capacity.convergence import Convergence

AHEAD = 2
"""Predictions go up to so many times the largest number of cores that is measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationPlan:
    """MST's offline training (III-A): S, the repetitions, and the rule of II-A."""

    counts: tuple[int, ...] = (1, 2, 3, 4, 6)
    """S: the numbers of cores whose samples the curves are fitted to."""
    checks: tuple[int, ...] = ()
    """Numbers of cores that are measured to check the prediction, and are no part of the fit."""
    repeats: int = 2
    """How often each number is measured."""
    rule: Convergence = field(default_factory=Convergence)
    most_samples: int = 30
    """A measurement that has not converged after so many samples ends all the same."""
    batch_s: float = 2.0
    """How long a micro-batch is to take; its rows are chosen accordingly."""
    most: int | None = None
    """The largest number of cores to predict; None: twice the largest that is asked for."""
    validations: int = 2
    """The most validation points (III-A2); 0: the training error chooses."""
    threshold: float = 0.1
    """A validation point is where the curves differ by more than this share."""

    def __post_init__(self) -> None:
        for name, counts in (("counts", self.counts), ("check", self.checks)):
            for count in counts:
                if count < 1:
                    raise AskedWrongly(f"--{name} {count}: give numbers of cores of 1 or more")
        if not self.counts:
            raise AskedWrongly("--counts: give the numbers of cores to measure, such as 1,2,3,4,6")
        both = sorted(set(self.counts) & set(self.checks))
        if both:
            raise AskedWrongly(
                f"--check {both[0]}: the fit uses {both[0]} cores as well; a check is of a number"
                " that is not in --counts"
            )
        if self.repeats < 1:
            raise AskedWrongly(f"--repeats {self.repeats}: give 1 or more")
        if self.most_samples <= self.rule.latest:
            raise AskedWrongly(
                f"--most-samples {self.most_samples}: {self.rule.latest + 1} samples are needed to"
                " see whether they have converged; give as many or more"
            )
        if not 0.1 <= self.batch_s <= 600.0:
            raise AskedWrongly(f"--batch {self.batch_s:g}s: give 100ms to 10min")
        if self.most is not None and self.most < self.largest:
            raise AskedWrongly(
                f"--most {self.most}: {self.largest} cores are to be measured; give as many or more"
            )
        if self.validations < 0:
            raise AskedWrongly(f"--validations {self.validations}: give 0 or more")

    @property
    def largest(self) -> int:
        """The largest number of cores that is asked for."""
        return max(*self.counts, *self.checks, 1)

    @property
    def predicted(self) -> int:
        """The largest number of cores to predict, and so to validate."""
        return AHEAD * self.largest if self.most is None else self.most
