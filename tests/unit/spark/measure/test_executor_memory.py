"""The memory of executors from what their Python workers told, and what settings leave to them."""

import mmap
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.spark.measure.test_operator_meter import report
from tidegate.spark.batch.report import TaskReport
from tidegate.spark.batch.worker_memory import WorkerMemory, group_room, worker_memory
from tidegate.spark.measure.executor_memory import executor_memory
from tidegate.spark.measure.memory_settings import python_limit_bytes, size_of


def told(executor: str, process: int, size: int, room: int | None, part: int = 0) -> TaskReport:
    memory = WorkerMemory(process=process, bytes=size, base_bytes=10, room_bytes=room)
    return replace(report("m", 0, 5, 1.0), executor=executor, memory=memory, part=part)


def test_workers_of_an_executor_are_full_at_the_same_time() -> None:
    reports = [
        told("a:/0", 1, 50, 100),
        told("a:/0", 1, 70, 80, part=1),
        told("a:/0", 2, 40, 90),
        told("b:/1", 1, 20, None),
        report("m", 0, 5, 1.0),
    ]
    first, second = executor_memory(reports)
    assert (first.name, first.memory_bytes, first.base_bytes) == ("a:/0", 110, 20)
    assert (first.limit_bytes, first.parts) == (110 + 80, 2)
    assert first.fullness == pytest.approx(110 / 190)
    assert (second.limit_bytes, second.fullness) == (None, 0.0)
    assert executor_memory(reports, 150)[0].limit_bytes == 150


def test_executors_of_a_host_share_what_is_left() -> None:
    one, other = executor_memory([told("a:/0", 1, 50, 100), told("a:/1", 2, 50, 100)])
    assert one.limit_bytes == other.limit_bytes == 100


def test_this_process_tells_its_memory() -> None:
    found = worker_memory()
    if found is None:
        pytest.skip("the system does not tell the memory of a process")
    with mmap.mmap(-1, 80_000_000, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as ballast:
        ballast.write(b"x" * 80_000_000)  # pages that no allocator had before
        more = worker_memory()
    assert more is not None and more.bytes - found.bytes > 60_000_000
    assert more.room_bytes is None or more.room_bytes > 0
    assert found.base_bytes <= found.bytes


def test_what_a_group_still_allows(tmp_path: Path) -> None:
    assert group_room(tmp_path) is None, "it tells nothing"
    (tmp_path / "memory.max").write_text("max\n")
    assert group_room(tmp_path) is None
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 400\ninactive_file 250\nactive_file 50\n")
    assert group_room(tmp_path) == 1000 - (700 - 250)


@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        ({}, 0.75 * 384 * 2**20),
        ({"spark.executor.memory": "10g"}, 0.75 * 2**30),
        ({"spark.executor.memoryOverhead": "2048"}, 0.75 * 2**31),
        (
            {"spark.executor.memoryOverhead": "1g", "spark.executor.pyspark.memory": "512m"},
            0.75 * 2**30 + 2**29,
        ),
    ],
)
def test_what_yarn_leaves_to_python(settings: dict[str, str], limit: float) -> None:
    assert python_limit_bytes("yarn", settings.get) == int(limit)
    assert python_limit_bytes("spark://h:7077", settings.get) is None


def test_sizes() -> None:
    assert [size_of(one) for one in ("", "5", "1k", "2MB", "3 g")] == [
        0,
        5 * 2**20,
        2**10,
        2 * 2**20,
        3 * 2**30,
    ]
