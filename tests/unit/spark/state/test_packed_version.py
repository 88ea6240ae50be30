"""A version that is packed for tasks: each finds its own chains and files, and all names."""

import gc
import json
import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate import columns
from tidegate.spark.state import packed_version
from tidegate.spark.state.chains import Chains
from tidegate.spark.state.event_times import SourceTime
from tidegate.spark.state.packed_version import PackedVersion
from tidegate.spark.state.version import Piece, StateFile, TaskChange, Version


def file_of(batch: int, task: int) -> StateFile:
    pieces = (Piece(0, 3, 5, None, None, 8, 100, 7), Piece(4, 7, 2, due_from_us=1, due_to_us=9))
    return StateFile(f"{batch:010d}-{task:05d}-x.arrow", 100 + batch, pieces, None)


changes = st.lists(
    st.dictionaries(st.integers(0, 7), st.tuples(st.integers(0, 2), st.integers(0, 4)), max_size=8),
    max_size=6,
)
"""For each batch and shard, its task, and how many files of its chain stay."""


def changes_of(number: int, shards: dict) -> list[TaskChange]:
    """The changes of the tasks of a batch."""
    found = []
    for task in sorted({task for task, _ in shards.values()}):
        mine = {shard: kept for shard, (its, kept) in shards.items() if its == task}
        found.append(change_of(file_of(number, task), mine))
    return found


def change_of(file: StateFile, kept: dict[int, int]) -> TaskChange:
    return TaskChange(file, np.array([*kept], np.int64), np.array([*kept.values()], np.int64))


def version_of(batches) -> Version:
    version = Version.empty(8)
    for number, shards in enumerate(batches):
        version = version.after(changes_of(number, shards), {"": number}, 0, at_us=number)
    return version


@given(changes, st.sets(st.integers(0, 7)))
def test_a_task_finds_its_own_chains_as_they_are_in_the_whole_version(batches, shards) -> None:
    version = version_of(batches)
    packed = pickle.loads(pickle.dumps(PackedVersion.of(version)))
    mine = packed.only(np.array(sorted(shards), np.int64))
    for shard in range(8):
        whole = [version.files[number] for number in version.chains[shard]]
        found = [mine.files[number] for number in mine.chains[shard]]
        assert found == (whole if shard in shards else [])
    told = dict(zip(mine.files, mine.holders_of_files().tolist(), strict=True))
    everywhere = dict(zip(version.files, version.holders_of_files().tolist(), strict=True))
    assert told.items() <= everywhere.items(), "shards of other tasks count as well"
    assert mine.names <= version.names == packed.names
    assert mine.names == {
        version.files[number].name for shard in shards for number in version.chains[shard]
    }
    assert (mine.event_times, mine.handed_us, mine.at_us) == (
        version.event_times,
        version.handed_us,
        version.at_us,
    )


@given(changes)
def test_all_shards_together_are_the_whole_version(batches) -> None:
    version = version_of(batches)
    assert PackedVersion.of(version).only(np.arange(8)) == version


def test_event_times_travel_with_it() -> None:
    version = Version(2, (), Chains.none(2), {"a": SourceTime(5, 1)}, 3, 4)
    assert PackedVersion.of(version).only(np.array([1])) == version


def test_another_file_of_the_same_name_is_not_taken_for_the_first() -> None:
    first = StateFile("0000000000-00000-x.arrow", 1, ())
    other = StateFile("0000000000-00000-x.arrow", 2, ())
    for file in (first, other, first):
        version = Version(1, (file,), Chains.of([(0,)]))
        assert PackedVersion.of(version).only(np.array([0])).files == (file,)


@given(changes)
def test_files_that_no_chain_needs_are_left_out_and_the_others_keep_their_order(batches) -> None:
    version = Version.empty(8)
    chains: list[list[StateFile]] = [[] for _ in range(8)]
    for number, shards in enumerate(batches):
        made = changes_of(number, shards)
        version = version.after(made, {}, 0)
        for change in made:
            for shard, kept in zip(change.shards.tolist(), change.kept.tolist(), strict=True):
                chains[shard] = [*chains[shard][:kept], change.file]
    assert [[version.files[n] for n in chain] for chain in version.chains] == chains
    assert version.files == tuple(sorted({f for c in chains for f in c}, key=lambda f: f.name))
    assert Version.from_json(json.loads(columns.dumps(version.to_json()))) == version


def test_files_that_no_version_has_any_more_are_forgotten() -> None:
    gc.collect()
    before = len(packed_version._remembered)
    version = version_of([{0: (0, 0)}, {1: (0, 0)}])
    assert PackedVersion.of(version).files == PackedVersion.of(version).files
    assert len(packed_version._remembered) == before + 2
    del version
    gc.collect()
    assert len(packed_version._remembered) == before
