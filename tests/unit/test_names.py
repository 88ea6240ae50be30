"""One name, one thing: no two public classes share a name, and files are called what they hold."""

import re
from collections import Counter

from tests.helpers.places import SOURCE

PACKAGE = SOURCE / "tidegate"
RIDDLES = {
    "coming",
    "leaps",
    "commons",
    "gathering",
    "around",
    "straight",
    "early",
    "spread",
    "earlier",
    "counts",
    "rounds",
}
"""Words that once named files and told a stranger nothing."""


def test_no_two_public_classes_share_a_name() -> None:
    names = Counter(
        name
        for path in PACKAGE.rglob("*.py")
        for name in re.findall(r"^class ([A-Z]\w*)", path.read_text(), re.MULTILINE)
    )
    assert names, "no class was found"
    assert [name for name, count in names.items() if count > 1] == []


def test_no_file_is_named_by_a_riddle() -> None:
    stems = {path.stem for path in PACKAGE.rglob("*.py")}
    assert "controller" in stems
    assert stems & RIDDLES == set()


def test_a_mechanism_has_the_same_name_in_every_room() -> None:
    known = {
        "queueing", "allocation", "microbatch", "latency", "learning", "batch", "measure", "loop",
        "shards", "state", "placement", "shedding", "capacity", "flow", "sharing", "baselines",
        "sources", "effect", "notices", "owner", "kafka", "jars", "program", "sinks", "s3",
        "clusters", "hdfs", "executors", "savepoint",
    }  # fmt: skip
    for room in ("models", "control", "spark", "sim"):
        folders = {
            path.name for path in (PACKAGE / room).iterdir() if (path / "__init__.py").exists()
        }
        assert folders, room
        assert folders <= known, room
