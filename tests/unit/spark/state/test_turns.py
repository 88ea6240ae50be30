"""Which shards a task merges, and how far back, beside the same rule written shard by shard."""

from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.spark.state.chains import Chains
from tidegate.spark.state.merge import TURN, turns
from tidegate.spark.state.version import StateFile, Version

FILES, SHARDS = 6, 24

chains = st.lists(
    st.sets(st.integers(0, FILES - 1), max_size=5).map(sorted), min_size=SHARDS, max_size=SHARDS
)
rows_of_files = st.lists(st.integers(0, 40), min_size=FILES * SHARDS, max_size=FILES * SHARDS)


def reach_of(file: int, rows: np.ndarray, mine: np.ndarray) -> SimpleNamespace:
    """A piece with these rows of the shards that are asked for."""
    starts = np.concatenate([[0], np.cumsum(rows)])
    shards = np.flatnonzero(mine & (rows > 0))
    return SimpleNamespace(file=file, shards=shards, begins=starts[shards], ends=starts[shards + 1])


def by_shard(lists, shards, batch, added, rows) -> dict[int, int]:
    """The rule for one shard after the other."""
    kept = {}
    for shard in shards:
        chain = lists[shard]
        if (batch + shard) % TURN or len(chain) < 2:
            continue
        taken, keep, newest = added[shard], len(chain), True
        while keep and (newest or rows[chain[keep - 1]][shard] <= 2.0 * max(taken, 1)):
            keep -= 1
            taken += rows[chain[keep]][shard]
            newest = False
        kept[shard] = keep
    return kept


@given(chains, rows_of_files, st.integers(0, TURN), st.lists(st.booleans(), min_size=SHARDS))
def test_the_turns_of_all_shards_at_once_are_those_of_each(lists, counts, batch, mine) -> None:
    batch += 100
    rows = np.array(counts).reshape(FILES, SHARDS)
    # So young that none of them is emptied.
    files = [StateFile(f"{batch - 1:010d}-0000{n}-x.arrow", 1, ()) for n in range(FILES)]
    version = Version(SHARDS, tuple(files), Chains.of(lists))
    own = np.flatnonzero(mine[:SHARDS])
    added = rows[0] // 2
    has = np.zeros((FILES, SHARDS), np.bool_)
    for shard in own:
        has[lists[shard], shard] = True
    reaches = [reach_of(number, rows[number], has[number]) for number in range(FILES)]
    for reach, file in zip(reaches, files, strict=True):
        reach.layer = SimpleNamespace(slots=(), shards=())
        assert file.batch_id > batch - TURN
    found = turns(version, own, batch, added, reaches)
    assert dict(zip(found.shards.tolist(), found.kept.tolist(), strict=True)) == by_shard(
        lists, own.tolist(), batch, added.tolist(), rows.tolist()
    )
