"""WebHDFS against an imitated NameNode: lost answers, standby, refusals in one sentence."""

import io
import os
from collections.abc import Iterator

import pyarrow as pa
import pytest

from tests.helpers.namenode import NameNode, namenode
from tidegate.spark.hdfs import patience
from tidegate.spark.hdfs import web as client
from tidegate.spark.hdfs.address import HdfsAddress
from tidegate.spark.hdfs.filesystem import HdfsFiles
from tidegate.spark.hdfs.patience import Patiences, tries
from tidegate.spark.hdfs.web import HdfsUnavailable, WebHdfs
from tidegate.spark.ports import free_ports
from tidegate.spark.state.files import Durable, Missing


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(patience, "_PAUSES_S", (0.01,))
    monkeypatch.setattr(patience, "PATIENCES", short := Patiences(first_s=0.5, failover_s=1.0))
    monkeypatch.setattr(client, "PATIENCES", short)
    yield
    kept = client._connections()
    while kept:
        kept.popitem()[1].close()


@pytest.fixture
def node() -> Iterator[NameNode]:
    with namenode() as running:
        yield running


def hdfs(*nodes: NameNode) -> WebHdfs:
    return WebHdfs(HdfsAddress("/", "me", tuple(node.url for node in nodes)))


def written(web: WebHdfs, path: str, content: bytes) -> None:
    web.write(path, io.BytesIO(content), len(content))


def test_a_file_is_written_read_and_removed(node: NameNode) -> None:
    web = hdfs(node)
    written(web, "/a b/ü", b"0123456789")
    assert node.files == {"/a b/ü": b"0123456789"}
    assert web.read("/a b/ü", 3, 4) == b"3456"
    assert web.read("/a b/ü", 8, 100) == b"89"
    status = web.status("/a b/ü")
    assert status is not None
    assert status["length"] == 10
    assert web.delete("/a b/ü")
    assert not web.delete("/a b/ü")
    assert web.status("/a b/ü") is None


def test_a_rename_does_not_take_the_place_of_a_file(node: NameNode) -> None:
    web = hdfs(node)
    node.files |= {"/mine": b"mine", "/there": b"theirs"}
    assert not web.rename("/mine", "/there")
    assert node.files == {"/mine": b"mine", "/there": b"theirs"}
    web.replace("/mine", "/there")
    assert node.files == {"/there": b"mine"}


def test_a_rename_whose_answer_is_lost_is_known_to_be_done(node: NameNode) -> None:
    web = hdfs(node)
    node.files["/mine"] = b"mine"
    node.lost_answers = 1
    assert web.rename("/mine", "/there")
    node.files["/other"] = b"other"
    node.lost_answers = 1
    web.replace("/other", "/there")
    assert node.files == {"/there": b"other"}


def test_a_lost_answer_makes_no_winner_of_the_one_who_came_second(node: NameNode) -> None:
    web = hdfs(node)
    node.files |= {"/mine": b"mine", "/there": b"theirs"}
    node.lost_answers = 1
    assert not web.rename("/mine", "/there")
    assert node.files["/there"] == b"theirs"


def test_a_rename_of_nothing_says_so(node: NameNode) -> None:
    with pytest.raises(FileNotFoundError):
        hdfs(node).replace("/none", "/there")
    node.files["/there"] = b"older"
    with pytest.raises(FileNotFoundError):
        hdfs(node).replace("/none", "/there")
    del node.files["/there"]
    assert not hdfs(node).rename("/none", "/there")
    with pytest.raises(FileNotFoundError):
        HdfsFiles(HdfsAddress("/", "me", (node.url,))).move("/none", "/there")


def test_the_active_one_of_two_namenodes_is_found(node: NameNode) -> None:
    with namenode() as standby:
        standby.refusal = (403, "StandbyException", "Operation is not supported in state standby")
        web = hdfs(standby, node)
        written(web, "/a", b"1")
        assert node.files == {"/a": b"1"}
        # After a failover the other one answers.
        standby.refusal, node.refusal = None, standby.refusal
        written(web, "/b", b"2")
        assert standby.files == {"/b": b"2"}


def test_a_datanode_that_does_not_answer_is_left_out(node: NameNode) -> None:
    dead = f"127.0.0.1:{free_ports(1)[0]}"
    node.datanodes.insert(0, dead)
    web = hdfs(node)
    written(web, "/a", b"1")
    assert node.files == {"/a": b"1"}
    assert web.read("/a", 0, 10) == b"1"


def test_without_a_namenode_the_address_is_named() -> None:
    nowhere = f"http://127.0.0.1:{free_ports(1)[0]}"
    web = WebHdfs(HdfsAddress("/", "me", (nowhere,)))
    with pytest.raises(HdfsUnavailable, match=f"no NameNode answers WebHDFS at {nowhere}") as told:
        web.status("/a")
    assert "?web=http://HOST:PORT" in str(told.value)


def test_a_namenode_that_has_answered_is_waited_for(
    node: NameNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failover, the other one is on standby, then in safe mode, and then it answers."""
    web = hdfs(node)
    written(web, "/a", b"1")
    monkeypatch.setattr(client, "PATIENCES", Patiences(first_s=0.0, failover_s=60.0))
    course = [(403, "StandbyException", "standby"), (403, "SafeModeException", "Cannot create")]
    tried = []

    def counted(patience_s: float) -> Iterator[int]:
        for number in tries(patience_s):
            tried.append(number)
            node.refusal = course.pop(0) if course else None
            yield number

    monkeypatch.setattr(client, "tries", counted)
    assert web.status("/a") is not None
    assert tried == [0, 1, 2]


def test_the_sentence_names_no_address_where_the_address_was_right(node: NameNode) -> None:
    web = hdfs(node)
    written(web, "/a", b"1")
    node.refusal = (403, "StandbyException", "standby")
    with pytest.raises(HdfsUnavailable, match=r"has answered .* for 1 s \(it is on stand") as told:
        web.status("/a")
    assert "?web=" not in str(told.value)


def test_a_task_waits_from_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = HdfsAddress("/", "me", (f"http://127.0.0.1:{free_ports(1)[0]}",))
    assert WebHdfs(nowhere)._patience_s == 0.5
    monkeypatch.setenv("SPARK_PYTHON_RUNTIME", "PYTHON_WORKER")
    assert WebHdfs(nowhere)._patience_s == 1.0


def test_a_datanode_that_comes_back_is_asked_again(node: NameNode) -> None:
    web = hdfs(node)
    written(web, "/a", b"1")
    back, node.datanodes = node.datanodes, [f"127.0.0.1:{free_ports(1)[0]}"]
    with pytest.raises(HdfsUnavailable, match=r"no DataNode of .* has answered"):
        web.read("/a", 0, 10)
    asked = len(node.asked)

    def then_back(operation: str) -> None:
        if len(node.asked) > asked + 2:
            node.datanodes = back

    node.watch = then_back
    assert web.read("/a", 0, 10) == b"1"


@pytest.mark.parametrize(
    ("refusal", "kind", "words"),
    [
        ((403, "SafeModeException", "Cannot create"), HdfsUnavailable, "in safe mode"),
        ((403, "RetriableException", "NameNode still not started"), HdfsUnavailable, "safe mode"),
        ((403, "AccessControlException", "denied: user=me"), PermissionError, "to the user 'me'"),
        ((401, "", ""), PermissionError, "asks for a login"),
        ((500, "IOException", "broken\n\tat java"), HdfsUnavailable, "500 for /a: IOException bro"),
    ],
)
def test_refusals_are_sentences(
    node: NameNode, refusal: tuple[int, str, str], kind: type[OSError], words: str
) -> None:
    node.refusal = refusal
    with pytest.raises(kind, match=words) as told:
        written(hdfs(node), "/a", b"1")
    assert "\n" not in str(told.value)


def test_a_checkpoint_directory_on_it(node: NameNode) -> None:
    place = Durable(f"hdfs://127.0.0.1:8020/ck?user=me&web={node.url}")
    assert not place.local
    assert place.location == "hdfs://127.0.0.1:8020/ck"
    assert place.create("owner", b"first")
    assert not place.create("owner", b"second")
    place.write("plan", b"1")
    place.write("plan", b"2")
    assert node.files == {"/ck/owner": b"first", "/ck/plan": b"2"}
    assert place.read("plan") == b"2"
    with pytest.raises(Missing, match="/ck/none"):
        place.read("none")
    # At no time was there no plan.
    assert "DELETE" not in node.asked[-4:]


def test_only_what_is_read_is_fetched(node: NameNode) -> None:
    files = HdfsFiles(HdfsAddress("/", "me", (node.url,)))
    content = bytes(range(256)) * 4096
    node.files["/t"] = content
    with files.open_input_file("/t") as source:
        source.seek(100_000)
        assert source.read_buffer(200_000).to_pybytes() == content[100_000:300_000]
    assert node.sent_bytes == 200_000
    assert node.asked == ["OPEN", "OPEN"], "one at the NameNode, one at the DataNode"
    with files.open_input_file("/t") as source:
        assert source.read() == content
    with files.open_input_file("/none") as source, pytest.raises(FileNotFoundError):
        source.read()


def test_a_table_is_read_by_parts(node: NameNode) -> None:
    files = HdfsFiles(HdfsAddress("/", "me", (node.url,)))
    table = pa.table({"a": list(range(50_000))})
    with files.open_output_stream("/t", {}) as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=20_000)
    assert len(node.files["/t"]) > 2 * (64 << 10)
    with files.open_input_file("/t") as source:
        assert source.size() == len(node.files["/t"])
        assert pa.ipc.open_file(source).read_all() == table
    node.asked.clear()
    with files.open_input_file("/t") as source:
        assert pa.ipc.open_file(source).get_batch(1).num_rows == 20_000
    assert node.asked == ["GETFILESTATUS", "OPEN", "OPEN"], "it is small, and fetched whole"


def test_a_fork_opens_connections_of_its_own(node: NameNode) -> None:
    web = hdfs(node)
    written(web, "/a", b"1")
    child = os.fork()
    if child == 0:
        written(web, "/b", b"2")
        os._exit(0 if web.read("/a", 0, 1) == b"1" else 1)
    assert web.read("/a", 0, 1) == b"1"
    assert os.waitpid(child, 0)[1] == 0
    assert node.files == {"/a": b"1", "/b": b"2"}
