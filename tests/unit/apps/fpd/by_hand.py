"""The application's operators, run batch by batch without Spark, with the loop between batches."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tidegate.apps.fpd.detector import Detector, messages, news
from tidegate.apps.fpd.generator import all_itemsets
from tidegate.apps.fpd.itemsets import decoded
from tidegate.apps.fpd.reference import Change, Pattern, StateRow
from tidegate.apps.fpd.reporter import report
from tidegate.apps.fpd.tweets import NONE
from tidegate.pipelines.keyed import KeyedBatch

Event = tuple[int, Pattern]
"""1 or -1, and the words of the tweet that enters or leaves."""

_CANDIDATE = pa.schema({"itemset": pa.int64(), "count": pa.int32(), "above": pa.int32()})


def matrix(tweets: Iterable[Pattern]) -> np.ndarray:
    """Tweets as the generator knows them."""
    given = list(tweets)
    most = max((len(words) for words in given), default=0)
    made = np.full((len(given), most), NONE, dtype=np.int64)
    for place, words in enumerate(given):
        made[place, : len(words)] = sorted(words)
    return made


@dataclass
class ByHand:
    """A detector with its state, its loop and its reporter."""

    threshold: int
    largest: int = 4
    state: dict[int, tuple[int, int, bool]] = field(default_factory=dict)
    loop: pa.Table = field(default_factory=_CANDIDATE.empty_table)
    changes: list[Change] = field(default_factory=list)
    generated: int = 0
    detected: int = 0
    told: int = 0
    batches: int = 0

    def generate(self, events: Iterable[Event]) -> pa.Table:
        given = list(events)
        signs = np.array([sign for sign, _ in given], dtype=np.int32)
        made = all_itemsets(matrix(words for _, words in given), signs, self.largest).rows
        self.generated += made.num_rows
        return made

    def take(self, rows: pa.Table) -> None:
        """One micro-batch of the detector: these rows, and no others."""
        if not rows.num_rows:
            return
        self.batches += 1
        self.detected += rows.num_rows
        keys, row_key = np.unique(rows["itemset"].to_numpy(), return_inverse=True)
        known = [place for place, key in enumerate(keys.tolist()) if key in self.state]
        old = [self.state[int(keys[place])] for place in known]
        batch = KeyedBatch(
            rows=rows,
            keys=pa.table({"itemset": keys}),
            row_key=row_key.astype(np.int64),
            state=pa.table(
                {
                    "itemset": keys[known],
                    "count": pa.array([row[0] for row in old], pa.int64()),
                    "above": pa.array([row[1] for row in old], pa.int64()),
                    "maximal": pa.array([row[2] for row in old], pa.bool_()),
                }
            ),
            state_key=np.array(known, dtype=np.int64),
            at_us=self.batches,
        )
        update = Detector(self.threshold).bind(rows.schema, ("itemset",)).update(batch)
        for row in update.upserts.to_pylist():
            self.state[row["itemset"]] = (row["count"], row["above"], row["maximal"])
        for key in update.drops["itemset"].to_pylist():
            del self.state[key]
        sent = messages(update.output).rows.cast(_CANDIDATE)
        self.told += sent.num_rows
        self.loop = pa.concat_tables([self.loop, sent])
        for row in report(news(update.output).rows).to_pylist():
            self.changes.append(Change(row["at_us"], tuple(row["pattern"]), row["maximal"]))

    def looped(self, most: int | None = None) -> pa.Table:
        """Take so many messages out of the loop; by default all of them."""
        most = self.loop.num_rows if most is None else most
        taken, self.loop = self.loop.slice(0, most), self.loop.slice(most)
        return taken

    def batch(self, events: Iterable[Event]) -> None:
        """One micro-batch, with all messages of the batches before."""
        self.take(pa.concat_tables([self.generate(events), self.looped()]))

    def settle(self) -> None:
        """Process messages until there are no more."""
        while self.loop.num_rows:
            self.take(self.looped())

    def records(self) -> dict[Pattern, StateRow]:
        return {decoded(key): StateRow(*row) for key, row in self.state.items()}
