"""Where the NameNode's web server is: from the URL, from Hadoop's configuration, or its default."""

from pathlib import Path

import pytest

from tidegate.errors import AskedWrongly
from tidegate.spark.clusters.hadoop import write_site
from tidegate.spark.hdfs.address import HdfsAddress, plain, resolved, web_addresses

NOTHING = {}.get
ONE = {"fs.defaultFS": "hdfs://nn:8020", "dfs.namenode.http-address": "0.0.0.0:50070"}
TWO = {
    "fs.defaultFS": "hdfs://both",
    "dfs.nameservices": "both, other",
    "dfs.ha.namenodes.both": "a,b",
    "dfs.namenode.http-address.both.a": "first:9870",
    "dfs.namenode.http-address.both.b": "second:9870",
}


def test_the_url_says_it_all() -> None:
    found = HdfsAddress.of("hdfs://nn:8020/a%20b/c/?user=me&web=http://x:1,https://y:2/", NOTHING)
    assert found == HdfsAddress("/a b/c", "me", ("http://x:1", "https://y:2"))
    assert HdfsAddress.of("hdfs://you@nn/c", NOTHING).user == "you"


@pytest.mark.parametrize(
    ("authority", "settings", "webs"),
    [
        ("nn:8020", {}, ["http://nn:9870"]),
        ("nn", {}, ["http://nn:9870"]),
        ("nn:8020", ONE, ["http://nn:50070"]),
        ("", ONE, ["http://nn:50070"]),
        ("elsewhere:8020", ONE, ["http://elsewhere:9870"]),
        ("nn:8020", ONE | {"dfs.http.policy": "HTTPS_ONLY"}, ["https://nn:9871"]),
        ("both", TWO, ["http://first:9870", "http://second:9870"]),
        ("", TWO, ["http://first:9870", "http://second:9870"]),
    ],
)
def test_web_servers(authority: str, settings: dict[str, str], webs: list[str]) -> None:
    assert web_addresses(authority, settings.get) == tuple(webs)


@pytest.mark.parametrize(
    ("url", "settings", "words"),
    [
        ("hdfs:///ck", {}, "no fs.defaultFS; give hdfs://HOST:PORT/DIRECTORY"),
        ("hdfs://nn/ck?webb=x", {}, "has the option 'webb'; expected user=NAME or web="),
        ("hdfs://nn/ck?web=nn:9870", {}, "web=nn:9870 in .* expected http://HOST:PORT"),
        ("hdfs://other/ck", TWO, "set dfs.namenode.http-address.other, or add"),
    ],
)
def test_what_cannot_be_found_is_said(url: str, settings: dict[str, str], words: str) -> None:
    with pytest.raises(AskedWrongly, match=words):
        HdfsAddress.of(url, settings.get)


def test_tasks_get_a_url_that_needs_no_configuration() -> None:
    url = resolved("hdfs://both/ck", TWO.get, "me")
    assert url == "hdfs://both/ck?user=me&web=http://first:9870,http://second:9870"
    assert HdfsAddress.of(url, NOTHING).webs == ("http://first:9870", "http://second:9870")
    assert resolved(url, NOTHING, "other") == url
    assert plain(url) == "hdfs://both/ck"
    assert plain("s3://bucket/ck?region=x") == "s3://bucket/ck?region=x"


def test_the_files_of_hadoop_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "ada")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert HdfsAddress.of("hdfs://nn/x") == HdfsAddress("/x", "ada", ("http://nn:9870",))
    write_site(tmp_path, "core-site.xml", {"fs.defaultFS": "hdfs://nn"})
    write_site(tmp_path, "hdfs-site.xml", {"dfs.namenode.http-address": "web:1"})
    assert HdfsAddress.of("hdfs:///x").webs == ("http://web:1",)
    (tmp_path / "hdfs-site.xml").write_text("<configuration>")
    with pytest.raises(AskedWrongly, match=r"hdfs-site\.xml is not a configuration of Hadoop"):
        HdfsAddress.of("hdfs:///x")
