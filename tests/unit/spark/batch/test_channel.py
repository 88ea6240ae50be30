"""A channel's log, without Spark."""

import itertools
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.spark.batch.channel import Log, packed
from tidegate.spark.state.files import Durable


def test_a_channel_hands_a_batch_over_once_and_forgets_what_was_read(tmp_path):
    log = Log(Durable(str(tmp_path)))
    log.make()
    assert log.length() == 0
    assert log.commit(0, -1, []) == -1
    assert log.length() == 0, "an empty batch wakes nobody"
    last = -1
    for batch_id in (1, 2, 4, 5, 6, 7):
        log.data.write(f"f{batch_id}", b"x")
        last = log.commit(batch_id, last, [(f"f{batch_id}", 1)])
        assert last == batch_id
    assert log.commit(2, 1, [("another try", 1)]) == 2
    assert log.length() == 8
    assert log.files(0, 8) == ["f1", "f2", "f4", "f5", "f6", "f7"]
    assert log.files(2, 5) == ["f2", "f4"]
    log.forget(8)
    assert log.files(5, 8) == ["f5", "f6", "f7"]
    assert log.data.names() == ["f5", "f6", "f7"]


def filled(tmp_path) -> Log:
    """Batches 1, 2, 4, 5 and 6, with 10 rows in 2 files each."""
    log = Log(Durable(str(tmp_path)))
    log.make()
    last = -1
    for batch_id in (1, 2, 4, 5, 6):
        last = log.commit(batch_id, last, [(f"f{batch_id}", 4), (f"g{batch_id}", 6)])
    return log


def test_a_consumer_that_fell_behind_reads_so_many_rows_at_a_time(tmp_path):
    log = filled(tmp_path)
    assert log.limited(0, most_rows=25, most_files=100) == 3
    assert log.limited(3, most_rows=25, most_files=100) == 6
    assert log.limited(6, most_rows=25, most_files=100) == 7
    assert log.limited(7, most_rows=25, most_files=100) == 7, "nothing is left"
    assert log.limited(0, most_rows=1, most_files=100) == 2, "at least one batch"
    assert log.limited(0, most_rows=1000, most_files=6) == 5


def test_a_listing_that_lags_behind_hides_no_batch(tmp_path, monkeypatch):
    log = filled(tmp_path)
    monkeypatch.setattr(Log, "_listed", lambda self: [1, 2, 5])
    assert [one.batch_id for one in log.waiting(0)] == [1, 2], "4 is missing before 5"
    assert log.limited(0, 1000, 1000) == 3
    assert [one.batch_id for one in log.between(0, 7)] == [1, 2, 4, 5, 6]
    assert log.files(2, 5) == ["f2", "g2", "f4", "g4"]


@given(position=st.integers(0, 62), seen=st.sets(st.integers(0, 62)))
def test_a_listing_that_lags_behind_removes_no_batch_that_is_still_read(position, seen):
    with TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patched:
        log = Log(Durable(place))
        log.make()
        for batch_id in range(63):
            log.data.write(f"{batch_id:010d}-a", b"x")
            log.commit(batch_id, batch_id - 1, [(f"{batch_id:010d}-a", 1)])
        log.note_read(position)
        patched.setattr(Log, "_listed", lambda self: sorted(seen))
        log.clean(64)
        patched.undo()
        assert log.files(position, 63) == [f"{n:010d}-a" for n in range(position, 63)]
        assert {f"{n:010d}-a" for n in range(position, 63)} <= set(log.data.names())


def test_batches_without_a_link_are_those_of_an_older_version(tmp_path):
    log = Log(Durable(str(tmp_path)))
    log.make()
    for batch_id in (0, 3):
        name = f"{batch_id:010d}.json"
        log.commits.write_json(name, {"batch": batch_id, "files": [[f"f{batch_id}", 1]]})
    log.commit(5, 3, [("f5", 1)])
    assert log.files(0, 6) == ["f0", "f3", "f5"]


def test_what_a_consumer_has_not_read_is_known_by_the_rows(tmp_path):
    log = filled(tmp_path)
    assert log.unread() == dict.fromkeys((1, 2, 4, 5, 6), 10)
    log.note_read(5)
    assert log.unread() == {5: 10, 6: 10}
    assert log.backlog() == 2


@given(st.lists(st.integers(1, 50)), st.integers(0, 100))
def test_small_files_are_read_together_in_their_order(rows, most_rows):
    files = [(str(number), count) for number, count in enumerate(rows)]
    packs = list(packed(files, most_rows))
    assert [name for pack in packs for name in pack] == [name for name, _ in files]
    count_of = dict(files)
    sizes = [sum(count_of[name] for name in pack) for pack in packs]
    assert all(size <= most_rows or len(pack) == 1 for size, pack in zip(sizes, packs, strict=True))
    for pack, following in itertools.pairwise(packs):
        assert sum(count_of[name] for name in pack) + count_of[following[0]] > most_rows
