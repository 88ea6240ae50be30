"""The state store on filesystems that are not this machine's directories."""

import io

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import fs

import tidegate as tg
from tests.helpers.keyed_store import SHARDS, Store
from tidegate.spark.batch.channel import Log
from tidegate.spark.state import files
from tidegate.spark.state.files import Durable
from tidegate.spark.state.manifest import Manifests

KEY = pa.schema([("k", pa.int64())])


class Remote(fs.FileSystemHandler):
    """Files in memory behind pyarrow's interface, with HDFS's manners.

    A rename does not replace a file that is there, a missing file cannot be deleted, and a file
    that is being written can be seen already.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.directories: set[str] = set()
        self.seen_growing: set[str] = set()

    def get_type_name(self):
        return "remote"

    def normalize_path(self, path):
        return path

    def get_file_info(self, paths):
        return [self._info(path.rstrip("/")) for path in paths]

    def _info(self, path):
        if path in self.files:
            return fs.FileInfo(path, fs.FileType.File, size=len(self.files[path]))
        there = path in self.directories
        return fs.FileInfo(path, fs.FileType.Directory if there else fs.FileType.NotFound)

    def get_file_info_selector(self, selector):
        base = selector.base_dir.rstrip("/") + "/"
        names = [*self.files, *self.directories]
        return [self._info(n) for n in names if n.startswith(base) and "/" not in n[len(base) :]]

    def create_dir(self, path, recursive):
        parts = path.strip("/").split("/")
        self.directories |= {"/" + "/".join(parts[: n + 1]) for n in range(len(parts))}

    def move(self, src, dest):
        if dest in self.files:
            raise OSError(f"{dest} is there already")
        if src not in self.files:
            raise FileNotFoundError(src)
        self.files[dest] = self.files.pop(src)

    def delete_file(self, path):
        if path not in self.files:
            raise FileNotFoundError(path)
        del self.files[path]

    def open_input_file(self, path):
        if path not in self.files:
            raise FileNotFoundError(path)
        return pa.PythonFile(io.BytesIO(self.files[path]), mode="r")

    open_input_stream = open_input_file

    def open_output_stream(self, path, metadata):
        handler = self
        handler.files[path] = b""
        handler.seen_growing.add(path)

        class Growing(io.BytesIO):
            def close(self):
                if not self.closed:
                    handler.files[path] = self.getvalue()
                super().close()

        return pa.PythonFile(Growing(), mode="w")

    def unused(self, *arguments):
        raise AssertionError("the store does not do this")

    copy_file = delete_dir = delete_dir_contents = delete_root_dir_contents = unused
    open_append_stream = unused


@pytest.fixture(params=["subtree", "remote"])
def elsewhere(request, tmp_path, monkeypatch) -> tuple[str, Remote | None]:
    """A URL, and what is behind it."""
    handler = Remote() if request.param == "remote" else None
    if handler is not None:
        behind = fs.PyFileSystem(handler)
    else:
        (tmp_path / "tree").mkdir()
        behind = fs.SubTreeFileSystem(str(tmp_path / "tree"), fs.LocalFileSystem())
    known = files._filesystem

    def by_url(url: str):
        scheme, mark, path = url.partition("://cluster")
        return (behind, path) if (scheme, mark) == ("far", "://cluster") else known(url)

    monkeypatch.setattr(files, "_filesystem", by_url)
    return "far://cluster/ck", handler


def store_at(url: str, tmp_path) -> Store:
    bound = tg.count().bind(KEY, ("k",))
    store = Store(tmp_path / "here", bound, KEY)
    root = Durable(url)
    store.durable = root.below("state").below("op")
    store.manifests = Manifests(root.below("manifests"), root.below("state"))
    store.durable.make()
    store.manifests.directory.make()
    return store


def check_store(store: Store) -> None:
    """Batches, moves between nodes, a batch that is tried again after its commit, and sweeps."""
    chance = np.random.default_rng(4)
    truth = np.zeros(300, dtype=np.int64)
    for batch_id in range(14):
        keys = chance.integers(0, 300, 200)
        truth += np.bincount(keys, minlength=300)
        rows = pa.table({"k": keys})
        route = chance.integers(0, 2, SHARDS).tolist()
        nodes = chance.integers(0, 3, 2).tolist()
        store.run(batch_id, rows, route, nodes, tries=2)
        if batch_id == 7:
            store.run(batch_id, rows, route, nodes)
    store.manifests.verify(store.manifests.read(13, {}))
    store.durable.write("0000000009-00000-deadbeef.arrow", b"lost")
    store.manifests.tidy()
    live = set().union(*(store.manifests.read(b, {})["op"].names for b in (11, 12, 13)))
    assert store.manifests.committed() == [11, 12, 13]
    old = [name for name in store.durable.names() if int(name[:10]) <= 10]
    assert set(old) == {name for name in live if int(name[:10]) <= 10}
    assert live <= set(store.durable.names())
    found = {row["k"]: row["count"] for row in store.state(13).to_pylist()}
    assert found == {key: n for key, n in enumerate(truth.tolist()) if n}
    assert store.reads["durable"] > 0, "shards that moved came from there"


def test_the_store_works_elsewhere(elsewhere, tmp_path):
    url, handler = elsewhere
    store = store_at(url, tmp_path)
    assert not store.durable.local
    check_store(store)
    if handler is not None:
        hidden = {path.rpartition("/")[2][:1] for path in handler.seen_growing}
        assert hidden == {"."}, "no name is seen before its content is whole"
        assert not [path for path in handler.files if path.rpartition("/")[2].startswith(".")]


def test_a_file_url_is_a_local_directory(tmp_path):
    store = store_at(f"file://{tmp_path}/ck", tmp_path)
    assert store.durable.local
    assert store.durable.location == f"file://{tmp_path}/ck/state/op/"
    check_store(store)


def test_a_question_mark_in_a_local_path_is_no_option(tmp_path):
    place = Durable(str(tmp_path / "what?now")).below("state")
    place.make()
    assert (tmp_path / "what?now" / "state").is_dir()


def test_a_channel_works_elsewhere(elsewhere):
    check_channel(Log(Durable(elsewhere[0]).below("channels/c")))


def check_channel(log: Log) -> None:
    """Batches are handed over, what was lost is left out, and old files are removed."""
    log.make()
    for batch_id in range(6):
        log.data.write(f"{batch_id:010d}-a", b"rows")
        log.data.write(f"{batch_id:010d}-lost", b"rows")
        log.commit(batch_id, batch_id - 1, [(f"{batch_id:010d}-a", 1)])
    assert log.length() == 6
    log.note_read(6)
    log.forget(6)
    log.sweep()
    assert log.files(3, 6) == [f"{n:010d}-a" for n in (3, 4, 5)]
    assert log.data.names() == [f"{n:010d}-{how}" for n in (3, 4, 5) for how in ("a", "lost")]
    with log.data.open("0000000003-a") as stream:
        assert stream.read() == b"rows"
