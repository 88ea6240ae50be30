"""What a release has left can be read: the description, the manifests and the files of state."""

import pytest

import tidegate as tg
from tests.helpers.kept_checkpoint import FIXTURES, expected, unpacked
from tidegate.errors import AskedWrongly
from tidegate.spark.savepoint.index import read_index
from tidegate.spark.savepoint.make import make_savepoint

RELEASES = sorted(path.stem for path in FIXTURES.glob("release-*.zip"))


def test_there_is_a_checkpoint_of_a_release():
    assert "release-0.1" in RELEASES


@pytest.mark.parametrize("release", RELEASES)
def test_its_state_is_read_as_it_was_written(release, tmp_path):
    checkpoint = str(unpacked(release, tmp_path / "ck"))
    visits = {row["key"]: row["n"] for row in tg.read_state(checkpoint, "visits").to_pylist()}
    totals = {row["key"]: row["total"] for row in tg.read_state(checkpoint, "totals").to_pylist()}
    count = sum(visits.values())
    assert count > 10
    assert (totals, visits) == expected(count)
    assert tg.read_state(checkpoint, "windows").num_rows > 0
    with pytest.raises(AskedWrongly, match="no keyed operator 'visit'; did you mean 'visits'"):
        tg.read_state(checkpoint, "visit")


@pytest.mark.parametrize("release", RELEASES)
def test_a_savepoint_is_made_of_it(release, tmp_path):
    checkpoint = str(unpacked(release, tmp_path / "ck"))
    made = make_savepoint(checkpoint, str(tmp_path / "sp"))
    assert set(made.batches) == {"main", "between"}
    assert read_index(str(tmp_path / "sp")).size_bytes == made.size_bytes > 1_000
