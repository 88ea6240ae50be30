"""Ctrl-C on a terminal signals the whole process group: the program, Spark and its workers."""

import os
import re
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark


def test_ctrl_c_stops_the_pipeline_between_two_batches_with_one_line(tmp_path):
    """The child has a process group of its own, as a job of a shell has."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.helpers.interrupted_driver", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert child.stdout.readline() == "batch 0\n", child.stderr.read()
        os.killpg(child.pid, signal.SIGINT)
        written, told = child.communicate(timeout=120)
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
    said = r"pipeline 'clicks' was stopped by Ctrl-C, after batch .*; start it again to go on\n"
    assert re.fullmatch(said, told), told
    assert child.returncode == -signal.SIGINT
    batches = ["batch 0", *written.splitlines()]
    assert batches == [f"batch {number}" for number in range(len(batches))]
    commits = tmp_path / "ck" / "segments" / "handover" / "spark" / "commits"
    assert sorted(file.name for file in commits.glob("[0-9]*")) == [
        str(number) for number in range(len(batches))
    ]
