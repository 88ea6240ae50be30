"""The mood of each user: whether the mean score of their last tweets is positive or negative.

A mood is judged after every tweet, in the order of the tweets, and each change of it is told. So
the answers do not depend on how micro-batches cut the stream. Scores are whole numbers, so the sums
over a user's last tweets are exact.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.apps.sentiment.options import SentimentOptions
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update

LEAST = 500
"""A mood is positive from this mean score on, and negative from minus this on: VADER's +-0.05."""
POSITIVE, NEUTRAL, NEGATIVE = 1, 0, -1

_STATE = pa.schema({"tweets": pa.int64(), "total": pa.int64(), "recent": pa.list_(pa.int64())})
_OUTPUT = pa.schema({"user": pa.int64(), "seq": pa.int64(), "mood": pa.int64()})

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MoodChanges:
    """The keyed function: emits (user, tweet, mood) when a tweet changes the mood of its user.

    The key is the column `user`, and rows must be in the order of `seq`. Users begin as neutral.
    """

    options: SentimentOptions

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """Fix the schemas."""
        return BoundKeyed(
            update=self.update,
            state=_STATE,
            output=_OUTPUT,
            identity={"function": "mood_changes", "history": self.options.history},
        )

    def update(self, batch: KeyedBatch) -> Update:
        """Put the new scores of each user behind the remembered ones, and judge each of them."""
        history = batch.state["recent"].combine_chunks()
        old = pc.list_flatten(history).to_numpy()
        old_key = batch.state_key[pc.list_parent_indices(history).to_numpy()]
        key = np.concatenate([old_key, batch.row_key])
        order = np.argsort(key, kind="stable")
        key = key[order]
        scores = np.concatenate([old, batch.rows["score"].to_numpy()])[order]
        users = batch.keys.num_rows
        size = np.bincount(key, minlength=users)
        first = np.cumsum(size) - size
        nth = np.arange(len(key)) - first[key]
        mood = moods(scores, nth, self.options.history)
        before = np.where(nth > 0, np.roll(mood, 1), NEUTRAL)
        # A remembered score stands for a tweet that was judged in an earlier batch.
        changed = np.flatnonzero((mood != before) & (order >= len(old)))
        return Update(
            output=pa.table(
                {
                    "user": batch.keys["user"].take(pa.array(key[changed])),
                    "seq": batch.rows["seq"].take(pa.array(order[changed] - len(old))),
                    "mood": mood[changed],
                },
                schema=_OUTPUT,
            ),
            upserts=self._kept(batch, scores[nth >= size[key] - self.options.history], size),
            upsert_key=np.arange(users),
        )

    def _kept(self, batch: KeyedBatch, recent: Ints, size: Ints) -> pa.Table:
        """The state of all users: totals, and the last scores of each."""
        users = batch.keys.num_rows
        known = batch.aligned()
        tweets = np.bincount(batch.row_key, minlength=users)
        total = np.zeros(users, dtype=np.int64)
        np.add.at(total, batch.row_key, batch.rows["score"].to_numpy())
        ends = np.cumsum(np.minimum(size, self.options.history))
        offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
        return pa.table(
            {
                "user": batch.keys["user"],
                "tweets": tweets + known["tweets"].fill_null(0).to_numpy(),
                "total": total + known["total"].fill_null(0).to_numpy(),
                "recent": pa.ListArray.from_arrays(offsets, pa.array(recent)),
            }
        )


def moods(scores: Ints, nth: Ints, history: int) -> Ints:
    """The mood after each score, by the mean of it and those before it, up to `history` in all.

    Scores stand user by user, and `nth` is the place of each among those of its user, from 0 on.
    """
    sums = np.concatenate([[0], np.cumsum(scores)])
    taken = np.minimum(nth + 1, history)
    ends = np.arange(1, len(scores) + 1)
    recent = sums[ends] - sums[ends - taken]
    found: Ints = np.sign(recent) * (np.abs(recent) >= LEAST * taken)
    return found
