"""A checkpoint that some machines do not share is refused by their names."""

import pytest

from tidegate.errors import AskedWrongly
from tidegate.spark import shared_checkpoint
from tidegate.spark.shared_checkpoint import HostAnswer, check_shared, look, refuse_unshared
from tidegate.spark.state.files import Durable


class Session:
    """A session on a cluster, as far as the check asks."""

    class sparkContext:  # noqa: N801 (Spark's name)
        master = "yarn"


def test_a_machine_with_the_same_directory_reads_the_file(tmp_path):
    place = Durable(str(tmp_path))
    place.write("x", b"mine")
    assert look(place, "x", b"mine").problem == ""
    assert look(place, "x", b"other").problem == "another file is there"
    assert look(place, "y", b"mine").problem == "the file is not there"
    assert "Unrecognized filesystem" in look(Durable("nfs://x/y"), "x", b"").problem


def test_the_machines_are_named():
    looks = [
        HostAnswer("b", "the file is not there"),
        HostAnswer("a"),
        HostAnswer("b", "the file is not there"),
    ]
    with pytest.raises(AskedWrongly, match=r"ck is not shared by all machines: b could not read"):
        refuse_unshared(Durable("/data/ck"), looks)
    with pytest.raises(AskedWrongly, match="give the executors credentials for it"):
        refuse_unshared(Durable("s3://ads/ck"), looks)
    with pytest.raises(AskedWrongly, match=r"hdfs://n/ck is not .* web servers of the NameNodes"):
        refuse_unshared(Durable("hdfs://n/ck?web=http://n:9870"), looks)
    refuse_unshared(Durable("/data/ck"), [HostAnswer("a")])
    refuse_unshared(Durable("/data/ck"), [])


@pytest.mark.parametrize("shared", [True, False])
def test_tasks_look_for_a_file_of_the_driver(tmp_path, monkeypatch, shared):
    place = Durable(str(tmp_path / "ck"))

    def elsewhere(session, ask):
        return [ask(), HostAnswer("far", "" if shared else "the file is not there")]

    monkeypatch.setattr(shared_checkpoint, "_on_all_executors", elsewhere)
    if shared:
        check_shared(Session, place)
    else:
        with pytest.raises(AskedWrongly, match="not shared by all machines: far could"):
            check_shared(Session, place)
    assert not list((tmp_path / "ck").iterdir()), "the file is removed again"
