"""Lock files of jars: what they say, and that ours are whole."""

from pathlib import Path

import pytest

import tidegate.spark.kafka
from tidegate.errors import TidegateError
from tidegate.spark.jars.lock import Jar, read_lock

LOCKS = sorted(Path(tidegate.spark.kafka.__file__).parent.glob("*.lock"))
SUM = "a" * 64


def written(tmp_path: Path, text: str) -> Path:
    lock = tmp_path / "some.lock"
    lock.write_text(text)
    return lock


def test_a_line_is_read_and_written(tmp_path):
    line = f"org.apache.kafka:kafka_2.13:4.1.0 sha256:{SUM}"
    lock = written(tmp_path, f"# why\n\n{line}  # and why not\n")
    assert read_lock(lock) == (Jar("org.apache.kafka", "kafka_2.13", "4.1.0", SUM),)
    assert str(read_lock(lock)[0]) == line


@pytest.mark.parametrize(
    "line",
    [
        "org.apache.kafka:kafka_2.13:4.1.0",
        f"org.apache.kafka:kafka_2.13 sha256:{SUM}",
        "org.apache.kafka:kafka_2.13:4.1.0 sha256:abc",
        f"org.apache.kafka:kafka_2.13:4.1.0 sha1:{SUM}",
        f"../evil:kafka_2.13:4.1.0 sha256:{SUM}",
        f"org:a/b:1 sha256:{SUM}",
    ],
)
def test_a_line_that_pins_nothing_is_refused_with_its_number(tmp_path, line):
    with pytest.raises(TidegateError, match=r"some\.lock, line 2: .* does not pin a jar"):
        read_lock(written(tmp_path, f"# first\n{line}\n"))


def test_a_jar_that_is_there_twice_is_refused(tmp_path):
    line = f"a.b:c:1 sha256:{SUM}\n"
    with pytest.raises(TidegateError, match=r"line 2: a\.b:c:1 is there twice"):
        read_lock(written(tmp_path, line + line))


def test_ours_are_there():
    assert {lock.name for lock in LOCKS} == {"broker.lock", "connector-4.2.lock"}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_ours_pin_each_jar_once_in_one_version_and_name_no_repository(lock):
    jars = read_lock(lock)
    assert len({(jar.group, jar.name) for jar in jars}) == len(jars) > 3
    assert "://" not in lock.read_text()


def test_the_broker_has_a_logger_that_fits_its_interface():
    """Without one it would stop without a word; the binding for slf4j 2 is another one."""
    versions = {jar.name: jar.version for jar in read_lock(LOCKS[0])}
    assert versions["slf4j-api"].startswith("1.7.")
    assert versions["log4j-slf4j-impl"] == versions["log4j-core"]
