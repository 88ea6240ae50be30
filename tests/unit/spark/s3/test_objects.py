"""Puts under a condition: one of several drivers succeeds, and each learns the truth."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tidegate.errors import TidegateError
from tidegate.spark.s3 import client
from tidegate.spark.s3 import objects as module
from tidegate.spark.s3.client import StoreRefusal, ask
from tidegate.spark.s3.objects import objects_of


@pytest.fixture
def objects(bucket):
    found = objects_of(f"s3://{bucket}/ck")
    assert found is not None
    return found


def test_of_many_who_create_an_object_one_succeeds(objects, bucket):
    path = f"{bucket}/ck/one"
    with ThreadPoolExecutor(8) as pool:
        wrote = list(pool.map(lambda n: objects.create(path, b"%d" % n), range(16)))
    assert sum(wrote) == 1
    assert objects.read(path) == b"%d" % wrote.index(True)


def test_an_object_that_is_there_is_not_replaced(objects, bucket):
    path = f"{bucket}/ck/one"
    assert objects.create(path, b"first")
    assert not objects.create(path, b"other")
    assert objects.read(path) == b"first"
    objects.remove(path)
    assert objects.read(path) is None
    objects.remove(path)


def test_an_answer_that_was_lost_is_no_loss(objects, bucket, monkeypatch):
    """The client asks again by itself, and is told that its own object exists."""
    done = []

    def asked_twice(address, doing, operation, **given):
        if operation == "put_object" and not done:
            done.append(ask(address, doing, operation, **given))
        return ask(address, doing, operation, **given)

    monkeypatch.setattr(module, "ask", asked_twice)
    assert objects.create(f"{bucket}/ck/one", b"mine")
    assert done


def test_a_put_during_another_one_is_tried_again(objects, bucket, monkeypatch):
    busy = [StoreRefusal("busy", 409, "ConditionalRequestConflict")] * 3
    monkeypatch.setattr(module, "_PAUSE_S", 0.0)

    def asked(address, doing, operation, **given):
        if operation == "put_object" and busy:
            raise busy.pop()
        return ask(address, doing, operation, **given)

    monkeypatch.setattr(module, "ask", asked)
    assert objects.create(f"{bucket}/ck/one", b"mine")
    busy += [StoreRefusal("busy", 409, "ConditionalRequestConflict")] * 100
    with pytest.raises(TidegateError, match=r"another put of ck/two is under way; nothing was"):
        objects.create(f"{bucket}/ck/two", b"mine")


class Broken:
    """The store's client, whose contents break off a number of times."""

    def __init__(self, around, times):
        self.around, self.times = around, times

    def get_object(self, **given):
        from botocore.exceptions import IncompleteReadError

        found = self.around.get_object(**given)
        if self.times:
            self.times -= 1

            def read():
                raise IncompleteReadError(actual_bytes=1, expected_bytes=4)

            found["Body"].read = read
        return found


def test_a_content_that_breaks_off_is_read_again(objects, bucket, monkeypatch):
    objects.create(f"{bucket}/ck/one", b"mine")
    broken = Broken(client._client(objects.address.endpoint, objects.address.region), 2)
    with monkeypatch.context() as patched:
        patched.setattr(client, "_client", lambda endpoint, region: broken)
        patched.setattr(client, "_PAUSE_S", 0.0)
        assert objects.read(f"{bucket}/ck/one") == b"mine"
        broken.times = 100
        with pytest.raises(TidegateError, match=r"broke off while reading ck/one") as told:
            objects.read(f"{bucket}/ck/one")
    assert "\n" not in str(told.value)
