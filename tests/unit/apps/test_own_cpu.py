"""The CPU time of a process and of all that it has started, from what the kernel tells."""

import os
from pathlib import Path

import pytest

from tidegate.apps.own_cpu import own_cpu_s

TICKS = os.sysconf("SC_CLK_TCK")


def tell(proc: Path, pid: int, parent: int, *times: int, name: str = "python") -> None:
    """A process as the kernel tells of it; only the parent and the times matter."""
    (proc / str(pid)).mkdir()
    before = " ".join(["0"] * 9)
    line = f"{pid} ({name}) S {parent} {before} {' '.join(map(str, times))} 20 0 1 0\n"
    (proc / str(pid) / "stat").write_text(line)


def test_what_it_has_started_counts_and_others_do_not(tmp_path: Path) -> None:
    tell(tmp_path, 10, 1, 100, 20, 3, 4)
    tell(tmp_path, 11, 10, 1000, 0, 0, 0, name="java (2) x")
    tell(tmp_path, 12, 11, 0, 500, 50, 0)
    tell(tmp_path, 13, 1, 7777, 7777, 7777, 7777)
    assert own_cpu_s(tmp_path, 10) == (127 + 1000 + 550) / TICKS


def test_a_process_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    tell(tmp_path, 10, 1, 1, 1, 1, 1)
    (tmp_path / "11").mkdir()
    (tmp_path / "11" / "stat").write_text("")
    assert own_cpu_s(tmp_path, 10) == 4 / TICKS


def test_where_nothing_is_told_there_is_no_value(tmp_path: Path) -> None:
    assert own_cpu_s(tmp_path / "none", 10) is None


def test_this_process_has_used_some() -> None:
    used = own_cpu_s()
    if used is None:
        pytest.skip("the kernel does not tell here")
    own = os.times()
    assert used >= 0.9 * (own.user + own.system) - 0.1
