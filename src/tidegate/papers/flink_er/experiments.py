"""Flink-ER's four applications, as the experiments of figures 7 to 10 run them.

None is cut: a task slot of Flink has an instance of every operator of its job, and the operators of
a micro-batch take turns on the same cores. So six cores are six tasks of every operator, and all of
them work on whatever there is to do: no other division of six cores is faster.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.apps.application import Application
from tidegate.apps.campaigns import application as campaigns
from tidegate.apps.catalogue import application
from tidegate.apps.learning import application as learning
from tidegate.apps.sentiment import application as sentiment
from tidegate.apps.wordcount import application as wordcount
from tidegate.apps.wordcount.lines import MEAN_WORDS
from tidegate.papers.flink_er.setting import CORES, RisingLoad

_ROUND = 2048
_VIEWS = 1 / 3
"""The share of events that are views, which `parse` lets through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadExperiment:
    """One application under its rising load."""

    figure: str
    title: str
    """The paper's name of the application."""
    app: str
    rows: str
    """What its rows are."""
    reader: str
    """The first operator, which gets every row of the source once."""
    visits: Mapping[str, float]
    """Rows that each stretched operator gets for each row of the source."""
    peak: float
    """The load at the end, as a share of what six cores can carry."""
    extra: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def application(self) -> Application:
        """The application itself."""
        return application(self.app)

    @property
    def work_s(self) -> float:
        """Seconds of a core that a row of the source takes in all operators."""
        stretched_s = self.application.stretched_s
        return sum(stretched_s[name] * visits for name, visits in self.visits.items())

    def load(self, minute_s: float) -> RisingLoad:
        """Its rising load."""
        return RisingLoad(CORES / self.work_s, self.peak, minute_s)


WORDCOUNT = LoadExperiment(
    figure="fig7",
    title="WordCount",
    app=wordcount.NAME,
    rows="lines",
    reader="lines",
    visits={wordcount.SPLIT: 1.0, wordcount.COUNT: MEAN_WORDS},
    peak=1.25,
)
SENTIMENT = LoadExperiment(
    figure="fig8",
    title="TwitterSentiment",
    app=sentiment.NAME,
    rows="tweets",
    reader="tweets",
    visits={sentiment.SCORE: 1.0, sentiment.MOOD: 1.0},
    peak=1.38,
)
LEARNING = LoadExperiment(
    figure="fig9",
    title="IncrementalLearning",
    app=learning.NAME,
    rows="examples",
    reader="examples",
    visits={learning.GRADIENT: 1.0},
    peak=1.23,
    extra={"round": str(_ROUND)},
    notes=(
        f"A round has {_ROUND:,} examples, so that no example of a batch has to wait for a model.",
    ),
)
CAMPAIGNS = LoadExperiment(
    figure="fig10",
    title="Streaming-Benchmarks",
    app=campaigns.NAME,
    rows="events",
    reader="events",
    visits={campaigns.PARSE: 1.0, campaigns.JOIN: _VIEWS, campaigns.COUNT: _VIEWS},
    peak=1.37,
)
