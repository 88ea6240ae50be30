"""Figure 11: what moving state costs at a rescale, against the size of the state.

The paper captures what its machines send during checkpoints and restores. Ours counts the bytes
that tasks write to the checkpoint and fetch from it, and the time in which no result comes.
"""

from collections.abc import Sequence

from tidegate.benching import Aim, at_most
from tidegate.control.shards.route import even_route
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.papers.flink_er.comparison import MOST_BREAK_S, RIGHT
from tidegate.papers.flink_er.setting import PAPERS_BREAK_S
from tidegate.papers.flink_er.state_moves import (
    CAMPAIGNS,
    FEW,
    MANY,
    MASTER,
    SENTIMENT,
    Filling,
    StateMove,
    measure,
)
from tidegate.papers.sessions import spark_on
from tidegate.view.pages.paper import Curve, Picture

FILLINGS = {
    SENTIMENT.title: (
        Filling(about="2,000 users", extra={"users": "2000"}, rows=4_000),
        Filling(about="20,000 users", extra={"users": "20000"}, rows=40_000),
    ),
    CAMPAIGNS.title: (
        Filling(about="2,000 campaigns", extra={"campaigns": "2000", "ads": "1"}, rows=12_000),
        Filling(
            about="100,000 campaigns",
            extra={"campaigns": "100000", "ads": "1"},
            rows=600_000,
        ),
    ),
}
FETCHED = "most state that a rescale fetches over what a restart does"
OVER_RESTART = "longest break at a rescale over that of a restart"
MOST_FETCHED = 1.0
"""4.3: the quantity of restored data is the same."""
MOST_OVER_RESTART = 0.5
"""4.4: the strategy shortens the break by about half."""
_SHARDS = 128


def figure_11(asked: Asked) -> Findings:
    """Both applications with state of several sizes."""
    moves = []
    cases = [
        (app, filling)
        for app in (SENTIMENT, CAMPAIGNS)
        for filling in FILLINGS[app.title][: 1 if asked.quick else None]
    ]
    with spark_on(MASTER, "tidegate paper flink-er") as spark:
        if not asked.quick:
            asked.progress.doing("warming up: the first move of a session is slow, as is a restart")
            measure(spark, *cases[0])
        told_one = asked.progress.each(cases, lambda one: f"{one[0].title}: {one[1].about}")
        for app, filling in told_one:
            moves.append(one := measure(spark, app, filling))
            asked.say(f"{app.title}: {_said(one)}")
    return told(moves)


def told(moves: Sequence[StateMove]) -> Findings:
    """Ours beside what the paper says."""
    wrong = [one.wrong for one in moves if one.wrong is not None]
    return Findings(
        compared=(
            *(line for one in moves for line in _lines(one)),
            Compared(
                f"shards that get another task from {FEW} to {MANY} tasks",
                f"{_by_equation_8():.0%} by eq. 8",
                f"{max(one.moved_shards for one in moves):.0%}",
            ),
        ),
        aims=(*aims(moves), at_most(RIGHT, len(wrong), 0)),
        pictures=tuple(_pictures(moves)),
        notes=(
            "A restart is Spark's and Flink's way to another parallelism: the query is stopped and"
            " started again, and every task fetches its state from the checkpoint.",
            "State is fetched by the piece: consecutive shards of a file, with 65,536 rows or more"
            " if there are as many. From a smaller file, all is fetched with the first shard.",
            "The checkpoint is on the same disk, not behind a network of 100 Mbit/s.",
            "Operators are not stretched here: nothing depends on their speed.",
            *wrong,
        ),
    )


def aims(moves: Sequence[StateMove]) -> list[Aim]:
    """A rescale fetches no more than a restart, and breaks for less time."""
    return [
        at_most(FETCHED, max(_share(one) for one in moves), MOST_FETCHED),
        at_most(
            "longest break at a rescale",
            max(one.rescaled.extra_s for one in moves),
            MOST_BREAK_S,
            "s",
        ),
        at_most(
            OVER_RESTART,
            max(one.rescaled.extra_s / max(one.restarted.extra_s, 1e-9) for one in moves),
            MOST_OVER_RESTART,
        ),
    ]


def _share(one: StateMove) -> float:
    """What a rescale fetched over what a restart did, which is everything."""
    return one.rescaled.fetched_bytes / max(one.restarted.fetched_bytes, 1)


def _by_equation_8() -> float:
    """The share of buckets that the paper's mapping gives to another instance."""
    old, new = even_route(_SHARDS, FEW), even_route(_SHARDS, MANY)
    return sum(a != b for a, b in zip(old, new, strict=True)) / _SHARDS


def _lines(one: StateMove) -> list[Compared]:
    name = f"{one.title} with {one.filled}, {one.state_bytes / 1e6:.1f} MB of state"
    return [
        Compared(
            f"{name}: written by a batch, MB",
            "small and periodic",
            round(one.written_bytes / 1e6, 2),
        ),
        Compared(
            f"{name}: fetched in a rescale; in a restart, MB",
            "the same in both",
            f"{one.rescaled.fetched_bytes / 1e6:.2f}; {one.restarted.fetched_bytes / 1e6:.2f}",
        ),
        Compared(
            f"{name}: break in a rescale; in a restart; usual gap, s",
            f"about {PAPERS_BREAK_S:g}; about twice as long",
            f"{one.rescaled.extra_s:.2f}; {one.restarted.extra_s:.2f}; {one.rescaled.usual_s:.2f}",
        ),
    ]


def _said(one: StateMove) -> str:
    return (
        f"{one.state_bytes / 1e6:.1f} MB: a rescale fetched {_share(one):.0%} of it and broke for"
        f" {one.rescaled.extra_s:.2f} s; a restart broke for {one.restarted.extra_s:.2f} s"
    )


def _pictures(moves: Sequence[StateMove]) -> list[Picture]:
    fetched, breaks = [], []
    for title in dict.fromkeys(one.title for one in moves):
        mine = [one for one in moves if one.title == title]
        sizes = tuple(one.state_bytes / 1e6 for one in mine)
        for way, taken in (
            ("rescale", [one.rescaled for one in mine]),
            ("restart", [one.restarted for one in mine]),
        ):
            name = f"{title}, {way}"
            fetched.append(Curve(name, sizes, tuple(one.fetched_bytes / 1e6 for one in taken)))
            breaks.append(Curve(name, sizes, tuple(one.extra_s for one in taken)))
    return [
        Picture("State that is fetched (figure 11)", "MB of state", "MB", tuple(fetched)),
        Picture("Time without a result", "MB of state", "seconds", tuple(breaks)),
    ]
