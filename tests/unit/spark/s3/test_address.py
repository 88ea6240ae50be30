"""URLs of S3: three clients get the same store, bucket and directory out of one."""

from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyarrow import fs

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.jars.lock import read_lock
from tidegate.spark.s3 import connector
from tidegate.spark.s3.address import ONE_REQUEST, Address, is_s3
from tidegate.spark.s3.connector import s3a_options
from tidegate.spark.state import files
from tidegate.spark.state.files import Durable

STORE = "http://127.0.0.1:9000"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "url, yes",
    [("s3://b/k", True), ("s3a://b", True), ("hdfs://h/s3", False), ("/s3", False), ("s3", False)],
)
def test_s3_is_known_by_its_scheme(url, yes):
    assert is_s3(url) == yes


def test_amazons_own_store_is_left_to_the_clients():
    found = Address.of("s3a://ads/ck/one/")
    assert (found.bucket, found.key, found.endpoint, found.region) == ("ads", "ck/one", None, None)
    assert found.spark_url == "s3a://ads/ck/one"
    assert found.pyarrow_url == "s3://ads/ck/one?allow_delayed_open=true"
    assert "fs.s3a.endpoint" not in s3a_options(found)


def test_the_environment_names_another_store_for_all_clients(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", STORE)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    found = Address.of("s3://ads/ck")
    assert found.endpoint == STORE
    assert "endpoint_override=127.0.0.1%3A9000" in found.pyarrow_url
    assert "scheme=http" in found.pyarrow_url
    assert "region=eu-west-1" in found.pyarrow_url
    options = s3a_options(found)
    assert options["fs.s3a.endpoint"] == STORE
    assert options["fs.s3a.endpoint.region"] == "eu-west-1"
    assert options["fs.s3a.path.style.access"] == "true"


def test_options_of_the_url_come_first(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", STORE)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    found = Address.of("s3://ads/ck?endpoint_override=store:8080&scheme=http&region=here")
    assert (found.endpoint, found.region) == ("http://store:8080", "here")
    assert "endpoint_override=store%3A8080" in found.pyarrow_url


def test_spark_gets_no_options_and_always_s3a():
    place = Durable("s3://ads/ck?region=here").below("segments/main")
    assert place.location == "s3a://ads/ck/segments/main"


def test_a_url_without_a_bucket_is_refused():
    with pytest.raises(AskedWrongly, match="does not name a bucket; expected s3://BUCKET"):
        Address.of("s3:///ck")


def test_an_older_pyarrow_does_without_the_option_it_lacks(monkeypatch):
    asked = []

    def older(url):
        asked.append(url)
        if ONE_REQUEST in url:
            raise pa.ArrowInvalid(f"Unexpected query parameter in S3 URI: '{ONE_REQUEST}'")
        return fs.LocalFileSystem(), "ads/ck"

    monkeypatch.setattr(files, "fs", SimpleNamespace(FileSystem=SimpleNamespace(from_uri=older)))
    monkeypatch.setenv("AWS_ENDPOINT_URL", STORE)
    assert files._bucket(Address.of("s3://ads/ck").pyarrow_url)[1] == "ads/ck"
    assert len(asked) == 2 and "endpoint_override" in asked[1]


def test_an_endpoint_with_a_password_is_refused(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://me:s3cr3t@store:9000")
    with pytest.raises(AskedWrongly, match=r"the endpoint .* has credentials") as caught:
        Address.of("s3://ads/ck")
    assert "s3cr3t" not in str(caught.value)


def test_executors_are_told_where_the_store_is_but_no_keys(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", STORE)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cr3t")
    monkeypatch.setattr(connector, "connector_jars", list)
    given = connector.connector_settings("mine.jar")
    assert given["spark.jars"] == "mine.jar"
    assert given["spark.executorEnv.AWS_ENDPOINT_URL"] == STORE
    assert given["spark.hadoop.fs.s3a.endpoint"] == STORE
    assert "s3cr3t" not in str(given)


def test_a_hadoop_that_was_not_tried_is_refused():
    with pytest.raises(TidegateError, match=r"S3 was not tried with the Hadoop 3\.3\.6 of pyspark"):
        connector.connector_lock("3.3.6")
    names = [jar.name for jar in read_lock(connector.connector_lock("3.5.0"))]
    assert "hadoop-aws" in names and "s3" in names and "bundle" not in names
