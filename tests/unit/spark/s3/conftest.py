"""A store in this process, one for all tests of a worker, and a bucket for each test."""

import pytest

from tests.helpers.s3_server import LocalStore
from tidegate.spark.clusters.store import KEYS, new_bucket
from tidegate.spark.s3 import client
from tidegate.spark.state import files


@pytest.fixture(scope="session")
def local_store():
    pytest.importorskip("moto", reason="tests on S3 need the development packages")
    store = LocalStore()
    yield store
    store.close()


@pytest.fixture
def use_store(monkeypatch):
    """Make a store the one that the environment names, with these keys."""

    def use(store, keys=KEYS):
        for name in ("AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3"):
            monkeypatch.delenv(name, raising=False)
        for name, value in {**KEYS, **keys, "AWS_ENDPOINT_URL": store.url}.items():
            monkeypatch.setenv(name, value)
        forget()

    yield use
    forget()


def forget() -> None:
    """Clients keep the keys that they were made with."""
    client._client.cache_clear()
    files._filesystem.cache_clear()


@pytest.fixture
def store(local_store, use_store):
    use_store(local_store)
    return local_store


@pytest.fixture
def bucket(store) -> str:
    return new_bucket()
