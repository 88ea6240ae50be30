"""The chains of all shards as columns, beside the same chains as lists."""

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.spark.state.chains import Chains

chains = st.lists(st.lists(st.integers(0, 11), max_size=4), min_size=1, max_size=9)


@given(chains)
def test_they_are_read_as_they_were_given(lists) -> None:
    found = Chains.of(lists)
    assert len(found) == len(lists) and found == Chains.of(map(tuple, lists))
    assert [list(one) for one in found] == lists
    assert [list(found[shard]) for shard in range(len(lists))] == lists
    assert json.loads(found.json_text) == lists
    assert [lists[shard] for shard in range(len(lists)) if lists[shard]] == [
        found.numbers[found.owners() == shard].tolist() for shard in np.unique(found.owners())
    ]


@given(chains, st.data())
def test_a_file_comes_behind_those_that_stay(lists, data) -> None:
    shards = data.draw(st.lists(st.integers(0, len(lists) - 1), unique=True))
    kept = data.draw(st.lists(st.integers(0, 5), min_size=len(shards), max_size=len(shards)))
    files = list(range(20, 20 + len(shards)))
    found = Chains.of(lists).changed(
        np.array(shards, np.int64), np.array(kept, np.int64), np.array(files, np.int32)
    )
    expected = [list(one) for one in lists]
    for shard, keep, file in zip(shards, kept, files, strict=True):
        expected[shard] = [*lists[shard][:keep], file]
    assert [list(one) for one in found] == expected


@given(chains, st.sets(st.integers(0, 8)))
def test_the_chains_of_other_shards_are_empty(lists, mine) -> None:
    flags = np.array([shard in mine for shard in range(len(lists))])
    found = Chains.of(lists).of_shards(flags)
    assert [list(one) for one in found] == [
        one if shard in mine else [] for shard, one in enumerate(lists)
    ]


@given(chains)
def test_files_that_are_left_out_close_up_the_numbers(lists) -> None:
    found = Chains.of(lists)
    used = found.used(12)
    left = [number for number in range(12) if used[number]]
    assert left == sorted({number for one in lists for number in one})
    assert [[left[number] for number in one] for one in found.renumbered(used)] == lists
