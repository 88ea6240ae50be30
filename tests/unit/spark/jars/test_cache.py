"""The cache of jars: what is fetched, what is refused, and what is said."""

import hashlib
from pathlib import Path

import pytest

from tidegate.errors import TidegateError
from tidegate.spark.jars.cache import cache_directory, jars_of
from tidegate.spark.jars.ivy import JarsUnavailable
from tidegate.spark.jars.lock import Jar

BYTES = {"one": b"the first", "two": b"the second"}
JARS = [
    Jar("org.some", name, "1.0", hashlib.sha256(content).hexdigest())
    for name, content in BYTES.items()
]


class Repository:
    """Imitates a repository that has `content`, and remembers what it was asked for."""

    def __init__(self, content=None):
        self.content = BYTES if content is None else content
        self.asked = []

    def __call__(self, coordinates, into):
        self.asked.append([one.split(":")[1] for one in coordinates])
        for jar in JARS:
            if jar.coordinates in coordinates and jar.name in self.content:
                path = into / jar.file
                path.parent.mkdir(parents=True)
                path.write_bytes(self.content[jar.name])


@pytest.fixture
def lock(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("TIDEGATE_JARS", str(tmp_path / "cache"))
    path = tmp_path / "some.lock"
    path.write_text("\n".join(str(jar) for jar in JARS))
    return path


def kept(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()}


def test_jars_are_fetched_once_in_the_order_of_the_lock(lock, capsys):
    repository = Repository()
    first = jars_of(lock, "it", fetch=repository)
    assert [path.read_bytes() for path in first] == list(BYTES.values())
    assert "it: fetching 2 jars" in capsys.readouterr().err
    assert jars_of(lock, "it", fetch=repository) == first
    assert repository.asked == [["one", "two"]]
    assert capsys.readouterr().err == ""


def test_a_damaged_jar_is_fetched_again(lock):
    repository = Repository()
    jars_of(lock, "it", fetch=repository)[1].write_bytes(b"damaged")
    assert jars_of(lock, "it", fetch=repository)[1].read_bytes() == BYTES["two"]
    assert repository.asked[1:] == [["two"]]


def test_other_bytes_than_the_pinned_ones_are_refused_and_not_kept(lock, tmp_path):
    with pytest.raises(TidegateError, match=r"org\.some:two:1\.0 .* another checksum") as caught:
        jars_of(lock, "it", fetch=Repository(BYTES | {"two": b"evil"}))
    assert not isinstance(caught.value, JarsUnavailable), "that would only skip the tests"
    assert JARS[1].sha256 in str(caught.value)
    assert kept(tmp_path) == set()


def test_without_a_network_it_says_what_is_missing_and_what_to_do(lock, tmp_path):
    def unreachable(coordinates, into):
        raise JarsUnavailable("UnknownHostException: somewhere")

    with pytest.raises(JarsUnavailable) as caught:
        jars_of(lock, "the Kafka broker", fetch=unreachable)
    said = str(caught.value)
    assert "\n" not in said
    for part in ("the Kafka broker needs 2 jars", "UnknownHost", "TIDEGATE_JARS", "IVY_SETTINGS"):
        assert part in said
    assert kept(tmp_path) == set()


def test_a_repository_that_answers_without_a_jar(lock, tmp_path):
    with pytest.raises(JarsUnavailable, match=r"without org\.some:two:1\.0"):
        jars_of(lock, "it", fetch=Repository({"one": BYTES["one"]}))
    assert kept(tmp_path) == set()


def test_a_directory_that_cannot_be_written(lock, tmp_path):
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(TidegateError, match="set TIDEGATE_JARS to a directory"):
        jars_of(lock, "it", fetch=Repository())


def test_where_they_are_kept(monkeypatch):
    monkeypatch.delenv("TIDEGATE_JARS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/some/cache")
    assert cache_directory() == Path("/some/cache/tidegate/jars")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_directory() == Path.home() / ".cache" / "tidegate" / "jars"
    monkeypatch.setenv("TIDEGATE_JARS", "~/jars")
    assert cache_directory() == Path.home() / "jars"
