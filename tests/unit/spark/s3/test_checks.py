"""Buckets that a pipeline cannot start on: one sentence each, before anything is written."""

import socket

import pytest

from tests.helpers.s3_server import LocalStore, user_with
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.checks import check_place
from tidegate.spark.clusters.store import KEYS
from tidegate.spark.s3 import client
from tidegate.spark.s3.address import Address
from tidegate.spark.s3.checks import check_exclusive, check_readable
from tidegate.spark.s3.client import ask
from tidegate.spark.state.files import Durable


def keys_in(bucket: str) -> list[str]:
    listed = ask(Address.of(f"s3://{bucket}"), "listing", "list_objects_v2")
    return [one["Key"] for one in listed.get("Contents", [])]


@pytest.mark.parametrize("directory", ["", "/ck", "/deep/er/"])
def test_a_good_bucket_passes_and_nothing_stays_in_it(bucket, directory):
    url = f"s3://{bucket}{directory}"
    check_place(Durable(url), "yarn", shared=False)
    assert keys_in(bucket) == []
    check_exclusive(url)
    assert keys_in(bucket) == []


def test_other_filesystems_are_not_asked(tmp_path):
    check_readable(str(tmp_path))
    check_exclusive("hdfs://nowhere/ck")


def test_a_bucket_that_does_not_exist(store):
    with pytest.raises(AskedWrongly, match=r"the bucket 'no-such-one' at .* does not exist; cre"):
        check_readable("s3://no-such-one/ck")


@pytest.mark.parametrize(
    "allowed, refused",
    [
        (["s3:GetObject"], "listing objects"),
        (["s3:ListBucket"], "reading objects"),
        (["s3:ListBucket", "s3:GetObject"], "writing objects"),
        (["s3:ListBucket", "s3:GetObject", "s3:PutObject"], "deleting objects"),
        (["s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject"], None),
    ],
)
def test_permissions(store, bucket, use_store, allowed, refused):
    use_store(store, user_with(allowed, bucket))
    store.check_permissions(after=0)
    try:
        if refused is None:
            check_readable(f"s3://{bucket}/ck")
            check_exclusive(f"s3://{bucket}/ck")
            return
        with pytest.raises(AskedWrongly, match=f"no permission for {refused} in the bucket"):
            check_readable(f"s3://{bucket}/ck")
            check_exclusive(f"s3://{bucket}/ck")
    finally:
        store.check_permissions(after=None)


def test_keys_that_the_store_does_not_know(store, bucket, use_store):
    use_store(store, {"AWS_ACCESS_KEY_ID": "AKIAUNKNOWN", "AWS_SECRET_ACCESS_KEY": "s3cr3t"})
    store.check_permissions(after=0)
    try:
        with pytest.raises(AskedWrongly, match="does not accept the credentials") as caught:
            check_readable(f"s3://{bucket}/ck")
        assert "s3cr3t" not in str(caught.value)
    finally:
        store.check_permissions(after=None)


def test_no_credentials_at_all(store, bucket, monkeypatch, tmp_path):
    for name in KEYS:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    client._client.cache_clear()
    with pytest.raises(AskedWrongly, match="there are no credentials for the bucket"):
        check_readable(f"s3://{bucket}/ck")


def test_a_profile_is_as_good_as_the_environment(store, bucket, monkeypatch, tmp_path):
    for name in KEYS:
        monkeypatch.delenv(name)
    path = tmp_path / "credentials"
    path.write_text("[ads]\naws_access_key_id = test\naws_secret_access_key = test\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(path))
    monkeypatch.setenv("AWS_PROFILE", "ads")
    client._client.cache_clear()
    check_exclusive(f"s3://{bucket}/ck")
    Durable(f"s3://{bucket}/ck").write("x", b"by pyarrow")
    assert keys_in(bucket) == ["ck/x"]


def test_a_store_that_does_not_answer(use_store, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    monkeypatch.setattr(client, "_TRIES", 1)

    class Nobody:
        url = f"http://127.0.0.1:{port}"

    use_store(Nobody)
    with pytest.raises(TidegateError, match=r"no store answers for the bucket 'ads' at http://127"):
        check_readable("s3://ads/ck")


def test_a_bucket_in_another_region():
    error = {"Code": "PermanentRedirect", "Region": "eu-west-1"}
    answer = {"Error": error, "ResponseMetadata": {"HTTPStatusCode": 301}}
    told = client._refused(answer, Address("ads", "ck", None, "us-east-2"), "listing", "")
    assert isinstance(told, AskedWrongly)
    assert "is not in the region 'us-east-2', but in 'eu-west-1'; set AWS_REGION" in str(told)


def test_a_store_that_ignores_conditions_is_refused(use_store):
    pytest.importorskip("moto")

    def deaf(application):
        def answer(environment, start):
            kept = {k: v for k, v in environment.items() if k != "HTTP_IF_NONE_MATCH"}
            return application(kept, start)

        return answer

    store = LocalStore(deaf)
    try:
        use_store(store)
        ask(Address.of("s3://deaf-one"), "making a bucket", "create_bucket")
        check_readable("s3://deaf-one/ck")
        with pytest.raises(AskedWrongly, match=r"does not honour conditional puts .* could not be"):
            check_exclusive("s3://deaf-one/ck")
        assert keys_in("deaf-one") == []
    finally:
        store.close()


def test_an_object_store_without_conditional_puts_is_refused(monkeypatch):
    place = Durable("gs://bucket/ck/owner")
    monkeypatch.setattr(Durable, "_publishes_at_once", property(lambda self: True))
    with pytest.raises(AskedWrongly, match="two drivers cannot be told apart; give a checkpoint"):
        place.create("0000000001.json", b"{}")


def test_without_botocore_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "botocore.session", None)
    client._client.cache_clear()
    with pytest.raises(AskedWrongly, match=r"pip install 'tidegate\[s3\]'"):
        check_readable("s3://ads/ck")
