"""The files of a checkpoint on a real HDFS. Its daemons run; Spark does not."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.unit.spark.state.test_other_filesystems import check_channel, check_store, store_at
from tidegate.spark.batch.channel import Log
from tidegate.spark.clusters.hdfs import Hdfs
from tidegate.spark.hdfs import web
from tidegate.spark.hdfs.patience import Patiences
from tidegate.spark.hdfs.web import HdfsUnavailable
from tidegate.spark.owner.epochs import Epochs
from tidegate.spark.owner.process import Process
from tidegate.spark.state.files import Durable, Missing

pytestmark = pytest.mark.experiment


@pytest.fixture
def place(hdfs: Hdfs) -> Durable:
    """A directory of the test's own."""
    made = Durable(f"{hdfs.url}/tests/{uuid.uuid4().hex[:8]}?web={hdfs.web}")
    made.make()
    return made


def test_files_appear_whole_are_listed_and_removed(place: Durable) -> None:
    assert not place.local
    assert "?" not in place.location
    place.write("0000000001-plan", b"one")
    place.write("0000000001-plan", b"another")
    assert place.read("0000000001-plan") == b"another"
    assert place.names() == ["0000000001-plan"]
    assert place.sizes() == {"0000000001-plan": 7}
    assert place.size("0000000001-plan") == 7
    assert place.size("none") is None
    with pytest.raises(RuntimeError, match="broken off"), place.writing("0000000002-x") as stream:
        stream.write(b"half")
        raise RuntimeError("broken off")
    assert not place.exists("0000000002-x")
    place.below("a").below("b").make()
    assert place.directories() == ["a"]
    place.remove("none")
    place.sweep((), 5)
    assert place.names() == []
    with pytest.raises(Missing, match="0000000001-plan"):
        place.read("0000000001-plan")


def test_a_large_file_comes_back_bit_for_bit(place: Durable, tmp_path: Path) -> None:
    content = np.random.default_rng(1).bytes(20_000_000)
    (tmp_path / "large").write_bytes(content)
    place.adopt(tmp_path / "large", "large")
    with place.open("large") as source:
        assert source.size() == len(content)
        source.seek(19_000_000)
        assert source.read(1000) == content[19_000_000:19_001_000]
        source.seek(5)
        assert source.read(10_000_000) == content[5:10_000_005]
    assert place.read("large") == content


def test_of_many_who_create_a_file_one_succeeds(place: Durable) -> None:
    for number in range(5):
        with ThreadPoolExecutor(8) as pool:
            tries = [pool.submit(place.create, f"{number}", b"%d" % who) for who in range(8)]
            won = [who for who, one in enumerate(tries) if one.result()]
        assert len(won) == 1
        assert place.read(f"{number}") == b"%d" % won[0]
    # Nothing is left of those who came second.
    assert set(place.sizes()) == {"0", "1", "2", "3", "4"}


def test_one_of_two_drivers_owns_a_checkpoint(place: Durable) -> None:
    epochs = Epochs(place.below("owner"))
    assert epochs.newest() is None
    with ThreadPoolExecutor(2) as pool:
        tries = [pool.submit(epochs.make, None, Process.here(), 1.0) for _ in range(2)]
        claims = [one.result() for one in tries]
    (owner,) = [claim for claim in claims if claim is not None]
    assert epochs.newest() == owner
    epochs.beat(owner, 1)
    epochs.beat(owner, 2)
    assert epochs.last_beat(owner) == (2, False)


def test_keyed_state(place: Durable, tmp_path: Path) -> None:
    check_store(store_at(place.url, tmp_path))


def test_a_channel(place: Durable) -> None:
    check_channel(Log(place.below("channels").below("c")))


def test_no_permission_is_one_sentence(hdfs: Hdfs, place: Durable) -> None:
    stranger = Durable(f"{place.location}?user=stranger&web={hdfs.web}")
    with pytest.raises(PermissionError, match="to the user 'stranger'") as told:
        stranger.write("a", b"1")
    assert "HADOOP_USER_NAME" in str(told.value)
    assert "\n" not in str(told.value)
    assert place.names() == []


def test_safe_mode_is_one_sentence(
    hdfs: Hdfs, place: Durable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "PATIENCES", Patiences(first_s=0.0, failover_s=0.0))
    place.write("a", b"1")
    hdfs.safe_mode(True)
    try:
        with pytest.raises(HdfsUnavailable, match="is in safe mode"):
            place.write("b", b"2")
        assert place.read("a") == b"1", "reading goes on"
    finally:
        hdfs.safe_mode(False)
    place.write("b", b"2")
    assert place.names() == ["a", "b"]


def test_without_its_namenode_it_is_one_sentence_and_then_goes_on(
    hdfs: Hdfs, place: Durable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "PATIENCES", Patiences(first_s=0.0, failover_s=0.0))
    place.write("a", b"1")
    hdfs.stop_namenode()
    try:
        with pytest.raises(HdfsUnavailable, match=f"no NameNode at {hdfs.web} has answered"):
            place.write("b", b"2")
    finally:
        hdfs.start_namenode()
    place.write("b", b"2")
    assert (place.read("a"), place.read("b")) == (b"1", b"2")


def test_the_web_server_is_found_in_hadoops_configuration(
    hdfs: Hdfs, place: Durable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(hdfs.directory / "namenode" / "conf"))
    place.write("a", b"1")
    assert Durable(place.location).read("a") == b"1"
    assert Durable(place.location.replace(hdfs.url, "hdfs://")).read("a") == b"1"
