"""The node's cache is private, lies below Spark's local directories, and can be done without."""

import errno
import os
import shutil
import stat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.keyed_store import SHARDS, Store
from tidegate.errors import AskedWrongly
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update
from tidegate.spark.state import cache_place, node_cache
from tidegate.spark.state.cache_place import LOCAL_DIRECTORIES, CachePlace, above_executors, own
from tidegate.spark.state.node_cache import NodeCache, open_layers

KEY = pa.schema([("k", pa.int64())])
ALL = [0] * SHARDS
MARK = "0123456789abcdef"
HEX = "9ab0eff7-5a38-483b-ab66-776a19dce9d"


@pytest.fixture(autouse=True)
def fresh_process():
    cache_place._resolved.cache_clear()
    open_layers.clear()
    yield
    cache_place._resolved.cache_clear()
    open_layers.clear()


def executor(tmp_path: Path, number: int) -> Path:
    """The directory that a standalone worker's executor has for its blocks."""
    path = tmp_path / "local" / f"spark-{HEX}0" / f"executor-{HEX}{number}" / f"blockmgr-{HEX}1"
    path.mkdir(parents=True)
    return path


def mode(path: Path | str) -> int:
    return stat.S_IMODE(Path(path).stat().st_mode)


def test_the_executors_of_a_host_share_a_private_cache_below_sparks_directory(
    tmp_path, monkeypatch
):
    found = set()
    for number in (1, 2):
        monkeypatch.setenv(LOCAL_DIRECTORIES, str(executor(tmp_path, number)))
        cache = NodeCache("op", None, 8, CachePlace(MARK))
        cache.make()
        assert cache.shared
        found.add(cache.directory)
    (directory,) = found
    assert directory == str(tmp_path / "local" / f"tidegate-{os.geteuid()}" / MARK / "op")
    assert [mode(path) for path in (directory, *Path(directory).parents[:2])] == [0o700] * 3


def test_a_mounted_directory_is_not_left(tmp_path, monkeypatch):
    volume = tmp_path / f"spark-{HEX}0"
    monkeypatch.setattr(Path, "is_mount", lambda self: self == volume)
    assert above_executors(volume / f"blockmgr-{HEX}1") == volume


def prepared(tmp_path: Path) -> Path:
    """The name of the shared cache, as another user may have prepared it: a link to elsewhere."""
    (tmp_path / "theirs").mkdir()
    name = tmp_path / "local" / f"tidegate-{os.geteuid()}"
    name.symlink_to(tmp_path / "theirs")
    return name


def test_a_link_that_somebody_prepared_is_not_followed(tmp_path, monkeypatch, caplog):
    mine = executor(tmp_path, 1)
    prepared(tmp_path)
    monkeypatch.setenv(LOCAL_DIRECTORIES, str(mine))
    cache = NodeCache("op", None, 8, CachePlace(MARK))
    cache.make()
    assert cache.directory == str(mine / "tidegate" / MARK / "op") and not cache.shared
    assert mode(mine / "tidegate") == 0o700
    assert list((tmp_path / "theirs").iterdir()) == []
    assert "is not a directory, but a link" in caplog.text


def test_a_directory_of_another_user_is_refused(tmp_path, monkeypatch):
    (tmp_path / "theirs").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    with pytest.raises(PermissionError, match="belongs to another user"):
        own(tmp_path / "theirs")


def test_a_directory_that_others_could_read_is_closed_to_them(tmp_path):
    (tmp_path / "mine").mkdir(mode=0o755)
    assert mode(own(tmp_path / "mine")) == 0o700


def test_a_parent_in_which_anyone_may_rename_is_refused(tmp_path, monkeypatch):
    tmp_path.chmod(0o777)
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    with pytest.raises(PermissionError, match="anyone may replace directories"):
        own(tmp_path / "mine")
    tmp_path.chmod(0o1777)
    own(tmp_path / "mine")


def test_an_asked_directory_that_is_a_link_is_an_error_that_says_what_to_do(tmp_path):
    (tmp_path / "theirs").mkdir()
    (tmp_path / MARK).symlink_to(tmp_path / "theirs")
    with pytest.raises(AskedWrongly, match=r"is not a directory, but a link .* another cache="):
        CachePlace(MARK, str(tmp_path)).resolve()


def test_it_is_removed_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setenv(LOCAL_DIRECTORIES, str(executor(tmp_path, 1)))
    place = CachePlace(MARK)
    NodeCache("op", None, 8, place).make()
    place.remove()
    assert [path.name for path in (tmp_path / "local").iterdir()] == [f"spark-{HEX}0"]


def counting(store: Store, batches: int, start: int = 0) -> None:
    for batch_id in range(start, start + batches):
        store.run(batch_id, pa.table({"k": np.arange(300)}), ALL, [batch_id % 2])


def test_without_room_for_a_cache_state_is_read_from_and_written_to_the_durable_part(
    tmp_path, monkeypatch
):
    store = Store(tmp_path, tg.count().bind(KEY, ("k",)), KEY)
    counting(store, 2)
    real = node_cache.write_pieces

    def full(stream, batches):
        if isinstance(stream, pa.OSFile):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(stream, batches)

    def nowhere(path, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(node_cache, "write_pieces", full)
    monkeypatch.setattr(node_cache, "write_whole", nowhere)
    open_layers.clear()
    counting(store, 9, start=2)
    assert set(store.state(10)["count"].to_pylist()) == {11}
    left = [path.name for path in tmp_path.glob("node-*/.*")]
    assert left == [], "nothing half written is left"


@pytest.mark.parametrize("replaced", [False, True])
def test_a_cache_that_vanishes_in_a_batch_does_not_fail_its_task(tmp_path, replaced):
    bound = tg.count().bind(KEY, ("k",))

    def vanishing(batch: KeyedBatch) -> Update:
        for node in tmp_path.glob("node-*"):
            shutil.rmtree(node)
            if replaced:
                node.write_text("a file where the directory was")
        return bound.update(batch)

    def gone(node: int) -> None:
        (tmp_path / f"node-{node}").unlink(missing_ok=True)

    store = Store(
        tmp_path, BoundKeyed(update=vanishing, state=bound.state, output=bound.output), KEY
    )
    for batch_id in range(12):
        counting(store, 1, start=batch_id)
        gone(batch_id % 2)
    assert set(store.state(11)["count"].to_pylist()) == {12}


def test_a_file_where_the_cache_should_be_means_no_cache(tmp_path):
    (tmp_path / "node-0").write_text("")
    (tmp_path / "node-1").write_text("")
    store = Store(tmp_path, tg.count().bind(KEY, ("k",)), KEY)
    counting(store, 12)
    assert set(store.state(11)["count"].to_pylist()) == {12}
    store.keeper(0).cache.prune(set(), 99)
