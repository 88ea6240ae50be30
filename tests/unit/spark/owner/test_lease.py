"""Claims and leases: what a driver learns that was paused, and was replaced meanwhile."""

import itertools

import pytest

from tests.helpers.interrupted import Interrupted
from tidegate.errors import TidegateError
from tidegate.spark.owner import epochs as module
from tidegate.spark.owner.epochs import Epochs, Fenced
from tidegate.spark.owner.lease import Lease
from tidegate.spark.owner.process import Process
from tidegate.spark.state import files
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


@pytest.mark.parametrize("starts", [1, 2, 5])
def test_a_driver_that_was_paused_in_its_claim_was_not_quick_enough(monkeypatch, starts):
    """Also if there were so many starts since that all it had written was removed."""
    monkeypatch.setattr(module, "KEPT", 2)
    claims = Epochs(Durable("slow:///ck/owner"))
    later = []

    def succeed() -> None:
        for number in range(starts):
            later.append(claims.make(claims.newest(), Process("there", number), 0.0))

    for at in itertools.count():
        handler = Interrupted(at, 1000, succeed)
        monkeypatch.setattr(files, "_filesystem", handler.by_url)
        later.clear()
        with handler.watched():
            mine = claims.make(None, Process("here", 1), 0.0)
        if not later:
            break
        assert later[-1] is not None
        assert claims.newest() == later[-1]
        assert mine is None or mine.number < later[-1].number
    assert at > 3, "it was paused before each of its operations, and at last before none"
