"""A guarded child ends with its parent, however that ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.helpers.places import SOURCE
from tidegate.spark.child import GuardedChild

PARENT = """
import sys, time
from pathlib import Path
from tidegate.spark.child import GuardedChild

child = GuardedChild(["sleep", "600"], Path(sys.argv[1]))
print(child.process.pid, flush=True)
time.sleep(600)
"""


def runs(pid: int) -> bool:
    """Whether a process is there and not yet only waiting to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_child_ends_when_its_parent_is_killed(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", PARENT, str(tmp_path / "log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert runs(pid)
        os.killpg(os.getpgid(pid), 0)
        assert os.getpgid(pid) != os.getpgid(parent.pid), "Ctrl-C does not reach it"
        parent.send_signal(signal.SIGKILL)
    until = time.monotonic() + 30
    while runs(pid):
        assert time.monotonic() < until, "it outlived its parent"


def test_one_that_does_not_end_when_asked_is_killed(tmp_path):
    log = tmp_path / "log"
    child = GuardedChild(["sh", "-c", "trap '' TERM; echo up; sleep 600 & wait; wait"], log)
    until = time.monotonic() + 30
    while "up" not in log.read_text():
        assert time.monotonic() < until
    child.stop(0.1)
    assert child.process.returncode == -signal.SIGKILL


def test_one_that_has_ended_can_be_stopped(tmp_path):
    child = GuardedChild(["true"], tmp_path / "log")
    child.process.wait()
    child.stop(1.0)
    child.kill()
    assert child.process.returncode == 0
