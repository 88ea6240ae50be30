"""The newest committed batch is found whatever a listing leaves out; lost manifests are told."""

import pytest

from tests.unit.spark.savepoint.test_savepoint import Made
from tidegate.errors import TidegateError
from tidegate.spark.batch.committed import newest_batch
from tidegate.spark.state.files import Durable

LISTED = ("manifests", "offsets", "commits")


@pytest.fixture
def from_batch_40(tmp_path):
    """A checkpoint whose older batches were removed, or that began with a savepoint."""
    made = Made(tmp_path / "ck")
    for number in (40, 41, 42):
        made.batch(number)
    return made


@pytest.mark.parametrize("begun", [False, True], ids=["between batches", "within a batch"])
@pytest.mark.parametrize("left_out", range(4))
@pytest.mark.parametrize("which", LISTED)
def test_a_listing_that_lags_behind_hides_no_batch(
    from_batch_40, monkeypatch, which, left_out, begun
):
    if begun:
        from_batch_40.batch(43, done=False)
    plain = Durable.names

    def lagging(self):
        names = plain(self)
        return names[: max(0, len(names) - left_out)] if self.url.endswith(which) else names

    monkeypatch.setattr(Durable, "names", lagging)
    assert newest_batch(from_batch_40.place, "main") == 42


@pytest.mark.parametrize("lost", [(42,), (41, 42), (40, 41, 42)])
def test_manifests_that_are_missing_are_told(from_batch_40, lost):
    for number in lost:
        (from_batch_40.root / f"segments/main/manifests/{number:010d}.json").unlink()
    with pytest.raises(TidegateError, match="has committed batch 42, but its manifest"):
        newest_batch(from_batch_40.place, "main")


def test_offsets_of_another_copy_are_told(from_batch_40):
    for log in ("offsets", "commits"):
        for number in (41, 42):
            (from_batch_40.root / f"segments/main/spark/{log}/{number}").unlink()
    with pytest.raises(TidegateError, match=r"after batch 42, but Spark's offsets .* batch 40"):
        newest_batch(from_batch_40.place, "main")
