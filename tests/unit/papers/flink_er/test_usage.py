"""Memory and CPU time of a process and everything below it, from an imitated /proc."""

import os
from pathlib import Path

import pytest

from tidegate.papers.flink_er.usage import Usage, below, used_by

TICKS = os.sysconf("SC_CLK_TCK")


def process(proc: Path, pid: int, parent: int, cpu_s: float = 0.0, kilobytes: int = 0) -> None:
    place = proc / str(pid)
    place.mkdir()
    fields = ["S", str(parent), *["0"] * 9, str(round(cpu_s * TICKS)), "0", *["0"] * 30]
    # A name may have a bracket and blanks in it.
    (place / "stat").write_text(f"{pid} (a) b) {' '.join(fields)}\n")
    (place / "smaps_rollup").write_text(f"00 ---p [rollup]\nRss: 9 kB\nPss: {kilobytes} kB\n")


def test_all_descendants_count_and_nobody_else(tmp_path: Path) -> None:
    process(tmp_path, 1, 0)
    process(tmp_path, 10, 1, 1.5, 100)
    process(tmp_path, 11, 10, 2.0, 50)
    process(tmp_path, 12, 11, 0.5, 25)
    process(tmp_path, 20, 1, 99.0, 999)
    pids = below(10, tmp_path)
    assert sorted(pids) == [10, 11, 12]
    used = used_by([*pids, 4711], 5.0, tmp_path)
    assert (used.memory_bytes, used.cpu_s) == (175 * 1024, pytest.approx(4.0))


def test_one_look_a_minute(tmp_path: Path) -> None:
    process(tmp_path, os.getpid(), 1, 10.0, 2000)
    usage = Usage(5.0, tmp_path)
    for at_s in (100.0, 101.0, 104.9, 105.0, 109.0, 110.5):
        usage.look(at_s)
    assert [one.at_s for one in usage.seen] == [100.0, 105.0, 110.5]
    minutes = usage.minutes()
    assert [one.at for one in minutes] == [1, 2]
    assert minutes[0].memory_mb == pytest.approx(2.048)
    assert [one.cpu for one in minutes] == [0.0, 0.0]


def test_without_proc_nothing_is_told(tmp_path: Path) -> None:
    usage = Usage(5.0, tmp_path / "none")
    usage.look(1.0)
    assert usage.minutes() == []
