"""The lease on a checkpoint: a second driver is refused, a dead or silent one is replaced."""

import json
import os
import subprocess
import sys
import threading

import pytest

from tests.helpers.places import ROOT
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.owner import owner as owner_module
from tidegate.spark.owner.epochs import KEPT, Epochs, Fenced
from tidegate.spark.owner.owner import take
from tidegate.spark.owner.process import Process
from tidegate.spark.state.files import Durable

ELSEWHERE = Process("elsewhere", 7, "another machine", "1")


@pytest.fixture
def epochs(tmp_path) -> Epochs:
    return Epochs(Durable(str(tmp_path)).below("owner"))


def test_a_second_run_of_this_process_is_refused_until_the_first_gives_up(epochs):
    first = take(epochs, "shop")
    with pytest.raises(AskedWrongly, match="in use by another run of this process since"):
        take(epochs, "shop")
    first.release()
    first.release()
    second = take(epochs, "shop")
    assert second.lease.epoch.number == 2
    second.lease.check()
    with pytest.raises(Fenced, match=rf"process {os.getpid()} on .* has taken over"):
        first.lease.check()
    second.release()


def test_a_process_that_has_ended_is_replaced_at_once(epochs):
    script = (
        "import sys; from tidegate.spark.owner.owner import take; "
        "from tidegate.spark.owner.epochs import Epochs; "
        "from tidegate.spark.state.files import Durable; import os; "
        "owner = take(Epochs(Durable(sys.argv[1])), 'shop'); "
        "print(owner.lease.epoch.process.pid, flush=True); "
        "os._exit(9)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, epochs.directory.url],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        check=False,
    )
    gone = epochs.newest()
    assert gone is not None
    assert gone.process.pid == int(done.stdout)
    assert gone.process.gone
    mine = take(epochs, "shop", patience_s=600)
    assert mine.lease.epoch.number == 2
    mine.release()


def test_a_driver_on_another_machine_is_judged_by_its_signs_of_life(epochs, monkeypatch):
    monkeypatch.setattr(owner_module, "_POLL_S", 0.001)
    other = epochs.make(None, ELSEWHERE, 0.0)
    assert other is not None
    assert not ELSEWHERE.gone, "nobody can tell from here"
    epochs.beat(other, 1)
    beating, done = threading.Event(), threading.Event()

    def beat() -> None:
        for number in range(2, 10_000):
            epochs.beat(other, number)
            beating.set()
            if done.wait(0.001):
                return

    alive = threading.Thread(target=beat)
    alive.start()
    try:
        assert beating.wait(5)
        with pytest.raises(AskedWrongly, match="in use by process 7 on elsewhere since 1970"):
            take(epochs, "shop", patience_s=600)
    finally:
        done.set()
        alive.join()
    mine = take(epochs, "shop", patience_s=0.02)  # it is silent now
    assert mine.lease.epoch.number == 2
    mine.release()


def test_a_claim_that_was_given_up_needs_no_patience(epochs):
    other = epochs.make(None, ELSEWHERE, 0.0)
    assert other is not None
    epochs.beat(other, 3, released=True)
    mine = take(epochs, "shop", patience_s=600)
    mine.release()


def test_the_thread_that_renews_the_lease_notices_that_it_is_lost(epochs, monkeypatch):
    monkeypatch.setattr(owner_module, "BEAT_S", 0.005)
    mine = take(epochs, "shop")
    told = threading.Event()
    lost: list[Fenced] = []

    def on_lost(error: Fenced) -> None:
        lost.append(error)
        told.set()

    mine.when_lost(on_lost)
    assert epochs.make(mine.lease.epoch, ELSEWHERE, 1.0) is not None
    assert told.wait(5)
    assert "process 7 on elsewhere has taken over" in str(lost[0])
    late: list[Fenced] = []
    mine.when_lost(late.append)
    assert late == lost, "who asks afterwards is told at once"
    again = take(
        epochs, "shop", patience_s=0.0
    )  # the process may start again: it has no lease any more
    again.release()


def test_of_two_that_claim_one_epoch_the_one_whose_file_stays_owns_it(epochs):
    """An object store lets both write; the first finds the other's content."""
    first = epochs.make(None, Process.here(), 0.0)
    assert first is not None
    assert epochs.make(None, ELSEWHERE, 0.0) is None, "a local directory lets only one"
    document = {**first.to_json(), "token": "another"}
    epochs.directory.write("0000000001.json", json.dumps(document).encode())
    with pytest.raises(Fenced):
        epochs.check(first)


def test_old_claims_are_removed_and_their_owners_fenced(epochs):
    claims = [epochs.make(None, ELSEWHERE, 0.0)]
    for _ in range(KEPT + 2):
        claims.append(epochs.make(claims[-1], ELSEWHERE, 0.0))
    assert len(epochs.directory.names()) == KEPT
    assert claims[0] is not None
    with pytest.raises(Fenced):
        epochs.check(claims[0])
    assert epochs.newest() == claims[-1]


def test_a_start_that_cannot_leave_a_sign_of_life_does_not_lock_the_checkpoint(epochs, monkeypatch):
    def full(self, mine, number, released=False):
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(Epochs, "beat", full)
        with pytest.raises(OSError, match="no space left"):
            take(epochs, "shop")
    again = take(epochs, "shop", patience_s=600)
    again.release()


def test_a_claim_that_is_damaged_is_named(epochs):
    take(epochs, "shop").release()
    epochs.directory.write("0000000001.json", b'{"epoch": 1}')
    with pytest.raises(TidegateError, match=r"0000000001.json is not a claim on the checkpoint"):
        take(epochs, "shop")
