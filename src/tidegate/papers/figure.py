"""The form of an experiment: a paper's figure or table, and what ours beside it is made of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tidegate.benching import Aim
from tidegate.progress import Progress
from tidegate.view.pages.paper import Picture

Body = Literal["spark", "simulated", "measured"]
Value = float | str | None

ABOUT_ANSWERS = ("wrong answers", "every row once", "equal a sequential replay")
"""How the names of aims end that say whether the answers of all runs were right."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One value of a figure: the paper's and ours."""

    name: str
    paper: Value
    """None where the paper prints nothing of the kind."""
    ours: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a run of an experiment found."""

    compared: tuple[Compared, ...]
    aims: tuple[Aim, ...] = ()
    pictures: tuple[Picture, ...] = ()
    notes: tuple[str, ...] = ()
    """Why ours differs from the paper's, where it does."""

    @property
    def about_answers(self) -> tuple[Aim, ...]:
        """The aims that say whether answers were right; none where nothing computes answers."""
        return tuple(aim for aim in self.aims if aim.name.endswith(ABOUT_ANSWERS))

    @property
    def wrong(self) -> tuple[Aim, ...]:
        """Those of them that were missed. Then nothing else that was measured counts."""
        return tuple(aim for aim in self.about_answers if not aim.met)


@dataclass(frozen=True, slots=True)
class Asked:
    """How an experiment is to run."""

    quick: bool = False
    say: Callable[[str], None] = print
    """Prints a line about what was found so far."""
    progress: Progress = field(default_factory=Progress)
    """Is told how much there is to do and which step begins, for a bar with the time left."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """Options that only this experiment has, as texts by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure or a table of a paper."""

    paper: str
    figure: str
    """Such as `fig6` or `table2`."""
    about: str
    body: Body
    """Where it runs."""
    minutes: float
    """About how long it takes on two cores."""
    stretched: bool = False
    """Whether operators take the paper's time by waiting."""
    also: tuple[str, ...] = ()
    """Other figures of the paper that the same runs show."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What each option means that only this experiment has, by name."""
    run: Callable[[Asked], Findings]
    """Runs it and tells what was found."""


def on_spark(
    paper: str,
    figure: str,
    about: str,
    minutes: float,
    run: Callable[[Asked], Findings],
    *,
    options: Mapping[str, str] | None = None,
    also: tuple[str, ...] = (),
) -> Figure:
    """A figure that runs on Spark with the paper's times per tuple, by waiting."""
    return Figure(
        paper=paper,
        figure=figure,
        about=about,
        body="spark",
        minutes=minutes,
        stretched=True,
        also=also,
        options=options or {},
        run=run,
    )


def simulated(
    paper: str,
    figure: str,
    about: str,
    minutes: float,
    run: Callable[[Asked], Findings],
    *,
    options: Mapping[str, str] | None = None,
    also: tuple[str, ...] = (),
) -> Figure:
    """A figure that a simulator makes."""
    return Figure(
        paper=paper,
        figure=figure,
        about=about,
        body="simulated",
        minutes=minutes,
        also=also,
        options=options or {},
        run=run,
    )
