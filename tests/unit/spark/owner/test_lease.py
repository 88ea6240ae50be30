"""A failure is told as what it is: the loss of the checkpoint, or an error of its own."""

import pytest

from tidegate.errors import TidegateError
from tidegate.spark.owner.epochs import Epochs, Fenced
from tidegate.spark.owner.lease import Lease
from tidegate.spark.owner.process import Process
from tidegate.spark.state.files import Durable


@pytest.fixture
def lease(tmp_path):
    epochs = Epochs(Durable(str(tmp_path / "owner")))
    epoch = epochs.make(None, Process("here", 1), 0.0)
    assert epoch is not None
    return Lease(epochs, epoch)


def fail(lease: Lease) -> None:
    with lease.blamed():
        raise TidegateError("the file x is missing")


def test_an_owner_fails_with_its_own_error(lease):
    with pytest.raises(TidegateError, match="x is missing") as told:
        fail(lease)
    assert not hasattr(told.value, "__notes__")


def test_a_driver_that_was_replaced_fails_with_that(lease):
    lease.epochs.make(lease.epoch, Process("there", 2), 0.0)
    with pytest.raises(Fenced, match="process 2 on there has taken over"):
        fail(lease)


def test_a_driver_that_cannot_ask_says_so(lease, monkeypatch):
    def unanswered(self, name):
        raise OSError("no route to host")

    monkeypatch.setattr(Durable, "read_json", unanswered)
    with pytest.raises(TidegateError, match="x is missing") as told:
        fail(lease)
    assert told.value.__notes__ == [
        "it could not be found out who has the checkpoint: no route to host"
    ]
