"""A version that is packed for tasks: each finds its own chains and files, and all names."""

import gc
import pickle

from hypothesis import given
from hypothesis import strategies as st

from tidegate.spark.state import packed_version
from tidegate.spark.state.event_times import SourceTime
from tidegate.spark.state.packed_version import PackedVersion
from tidegate.spark.state.version import Piece, StateFile, TaskChange, Version


def file_of(batch: int, task: int) -> StateFile:
    pieces = (Piece(0, 3, 5, None, None, 8, 100, 7), Piece(4, 7, 2, due_from_us=1, due_to_us=9))
    return StateFile(f"{batch:010d}-{task:05d}-x.arrow", 100 + batch, pieces, None)


changes = st.lists(
    st.lists(
        st.tuples(st.dictionaries(st.integers(0, 7), st.integers(0, 4), max_size=8)), max_size=3
    ),
    max_size=6,
)
"""For each batch and task, the shards in its file, and how many files of their chains stay."""


def version_of(batches) -> Version:
    version = Version.empty(8)
    for number, tasks in enumerate(batches):
        version = version.after(
            [TaskChange(file_of(number, task), kept) for task, (kept,) in enumerate(tasks)],
            {"": number},
            0,
            at_us=number,
        )
    return version


@given(changes, st.sets(st.integers(0, 7)))
def test_a_task_finds_its_own_chains_as_they_are_in_the_whole_version(batches, shards) -> None:
    version = version_of(batches)
    packed = pickle.loads(pickle.dumps(PackedVersion.of(version)))
    mine = packed.only(shards)
    for shard in range(8):
        whole = [version.files[number] for number in version.chains[shard]]
        found = [mine.files[number] for number in mine.chains[shard]]
        assert found == (whole if shard in shards else [])
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
    assert PackedVersion.of(version).only(range(8)) == version


def test_event_times_travel_with_it() -> None:
    version = Version(2, (), ((), ()), {"a": SourceTime(5, 1)}, 3, 4)
    assert PackedVersion.of(version).only([1]) == version


def test_another_file_of_the_same_name_is_not_taken_for_the_first() -> None:
    first = StateFile("0000000000-00000-x.arrow", 1, ())
    other = StateFile("0000000000-00000-x.arrow", 2, ())
    for file in (first, other, first):
        version = Version(1, (file,), ((0,),))
        assert PackedVersion.of(version).only([0]).files == (file,)


@given(changes)
def test_files_that_no_chain_needs_are_left_out_and_the_others_keep_their_order(batches) -> None:
    version = Version.empty(8)
    chains: list[list[StateFile]] = [[] for _ in range(8)]
    for number, tasks in enumerate(batches):
        made = [TaskChange(file_of(number, task), kept) for task, (kept,) in enumerate(tasks)]
        version = version.after(made, {}, 0)
        for change in made:
            for shard, kept in change.kept.items():
                chains[shard] = [*chains[shard][:kept], change.file]
    assert [[version.files[n] for n in chain] for chain in version.chains] == chains
    assert version.files == tuple(sorted({f for c in chains for f in c}, key=lambda f: f.name))
    assert Version.from_json(version.to_json()) == version


def test_files_that_no_version_has_any_more_are_forgotten() -> None:
    gc.collect()
    before = len(packed_version._remembered)
    version = version_of([[({0: 0},)], [({1: 0},)]])
    assert PackedVersion.of(version).files == PackedVersion.of(version).files
    assert len(packed_version._remembered) == before + 2
    del version
    gc.collect()
    assert len(packed_version._remembered) == before
