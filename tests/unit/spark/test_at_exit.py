"""What becomes of pipelines when the process ends: real processes, imitated runs."""

import subprocess
import sys

from tests.helpers.places import SOURCE

PROGRAM = """
import atexit, sys
from types import SimpleNamespace

atexit.register(print, "the cleanup of others")
from tidegate.errors import TidegateError
from tidegate.spark.at_exit import look_after

class Imitated:
    name, ended, asked = "shop", False, False
    def __init__(self, failure=None, hangs=False):
        self.failure, self.hangs = failure, hangs
    @property
    def unheard(self):
        return self.failure
    def ask(self):
        self.asked = True
    def wait(self, timeout_s):
        assert self.asked and 0 < timeout_s <= 60
        print("stopped")
        return not self.hangs
    def hanging(self):
        return "segment 'main' is in batch 7"

failed = TidegateError("pipeline 'shop' failed: no room")
print("begun")
"""


def ended(end: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM + end],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PYTHONPATH": str(SOURCE)},
    )


def test_a_run_that_is_active_is_stopped_and_the_code_stays_0():
    done = ended("look_after(Imitated())")
    assert done.stdout.splitlines() == ["begun", "stopped", "the cleanup of others"]
    assert (done.returncode, done.stderr) == (0, "")


def test_a_failure_that_nobody_heard_of_is_told_and_changes_the_exit_code():
    done = ended("look_after(Imitated(failed))")
    assert done.returncode == 120
    assert done.stderr == (
        "the process ends with a failed pipeline: pipeline 'shop' failed: no room\n"
    )
    assert done.stdout.splitlines() == ["begun", "stopped", "the cleanup of others"]


def test_a_program_that_ends_by_an_exception_keeps_its_code():
    done = ended("look_after(Imitated(failed))\n1 / 0")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr and "no room" in done.stderr


def test_a_batch_that_does_not_end_is_named():
    done = ended("look_after(Imitated(hangs=True))")
    assert done.returncode == 0
    assert "did not stop before the process ended: segment 'main' is in batch 7" in done.stderr


def test_a_forked_child_stops_nothing():
    fork = "import os\nsys.stdout.flush()\nif os.fork() == 0: sys.exit(0)\nos.wait()"
    done = ended(f"look_after(Imitated())\n{fork}")
    assert done.stdout.count("stopped") == 1
