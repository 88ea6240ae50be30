"""Reads tweets and scores their sentiment by VADER's lexicon and rules (Hutto and Gilbert, 2014).

VADER takes one text at a time. Everything else works on columns.
"""

from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from tidegate.apps.json_columns import read_objects

SCHEMA = "seq long, user long, score long"
UNITS = 10_000
"""VADER's compound score has four decimals. As a whole number of these, sums of it are exact."""

_TWEET = pa.schema({"text": pa.string(), "user": pa.struct({"id": pa.int64()})})


def score(rows: pa.Table) -> pa.Table:
    """A map from tweets to their users and scores, from -10000 to 10000."""
    read = read_objects(rows["tweet"], _TWEET)
    scores = [sentiment(text) for text in read["text"].to_pylist()]
    return pa.table(
        {
            "seq": rows["seq"],
            "user": pc.struct_field(read["user"], "id"),
            "score": pa.array(scores, pa.int64()),
        }
    )


def sentiment(text: str) -> int:
    """The score of one text."""
    compound: float = _analyzer().polarity_scores(text)["compound"]
    return round(compound * UNITS)


@lru_cache(maxsize=1)
def _analyzer() -> Any:
    """The lexicon, read once per process."""
    return SentimentIntensityAnalyzer()
