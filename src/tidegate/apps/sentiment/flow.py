"""The pipeline of TwitterSentiment: tweets are read and scored, and moods follow the scores."""

from pathlib import Path

from tidegate.apps.application import Settings, Verdict
from tidegate.apps.collected import Collected
from tidegate.apps.numbered import NumberedFlow
from tidegate.apps.sentiment import score, tweets
from tidegate.apps.sentiment.application import MOOD, SCORE, STRETCHED_S, TASKS
from tidegate.apps.sentiment.mood import MoodChanges
from tidegate.apps.sentiment.options import sentiment_options
from tidegate.apps.sentiment.reference import compare, expected_moods
from tidegate.apps.stretching import Stretched, stretched_map
from tidegate.pipelines.stream import Stream
from tidegate.spark.state.read import read_state

SHARDS = 128


def sentiment_flow(source: Stream, settings: Settings, directory: Path) -> NumberedFlow:
    """The operators behind a source of numbered rows."""
    options = sentiment_options(settings.extra)
    texts = tweets.TweetTexts(options, settings.seed)
    row_s = settings.times(STRETCHED_S)
    written = source.map(tweets.tweet_map(texts), tweets.SCHEMA, name="tweets")
    scored = written.map(
        stretched_map(score.score, row_s[SCORE]), score.SCHEMA, name=SCORE, tasks=TASKS
    )
    if settings.cut:
        scored = scored.cut("scores")
    judged = scored.keyed(
        MOOD,
        Stretched(MoodChanges(options), row_s[MOOD]),
        key="user",
        shards=SHARDS,
        tasks=TASKS,
        order_by="seq",
    )
    collected = Collected(directory)

    def verify(checkpoint: str, arrived: int) -> Verdict:
        expected = expected_moods(texts, arrived)
        return compare(collected.rows(), read_state(checkpoint, MOOD), expected, arrived)

    return NumberedFlow(judged.to(collected, name="changes"), verify)
