"""The descriptions of a checkpoint: no driver takes away or undoes what its successor wrote."""

import itertools
from contextlib import suppress

import pytest

import tidegate as tg
from tests.helpers.interrupted import Interrupted
from tests.unit.spark.batch.test_migration import kept, keyed
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.batch.descriptions import Description, Descriptions
from tidegate.spark.state import files
from tidegate.spark.state.files import Durable

OPENED = [
    pytest.param(None, kept("n int"), kept("n int"), id="a new checkpoint"),
    pytest.param(kept("n int"), kept("n long"), kept("n long"), id="the same change"),
    pytest.param(None, kept("n int"), kept("n long"), id="the successor has changed"),
]


@pytest.mark.parametrize(("earlier", "first", "second"), OPENED)
def test_a_driver_that_was_paused_in_its_start_does_no_harm(monkeypatch, earlier, first, second):
    """On a filesystem whose rename does not replace a file, whenever it sleeps and dies."""
    place = Checkpoint(Durable("slow:///ck"))
    written = []

    def succeed() -> None:
        place.open(second)
        written.append(place.description())

    for at, more in itertools.product(range(30), range(12)):
        handler = Interrupted(at, more, succeed)
        monkeypatch.setattr(files, "_filesystem", handler.by_url)
        written.clear()
        if earlier is not None:
            place.open(earlier)
        # What its successor wrote may not fit its own pipeline.
        with handler.watched(), suppress(AskedWrongly):
            place.open(first)
        if written:
            assert place.description() == written[0], (at, more)
    assert not written, "it was paused before each of its operations, and at last before none"


def test_the_newest_description_holds_and_the_others_stay(tmp_path):
    said = Descriptions(Durable(str(tmp_path)))
    assert said.newest() is None
    for number in range(12):
        before = said.newest()
        assert said.follow(before, {"n": number})
        assert not said.follow(before, {"n": "late"})
        assert said.newest() == Description(number, {"n": number})
    (tmp_path / "pipeline.py").write_text("")
    (tmp_path / "pipeline.x.json").write_text("")
    assert said.newest() == Description(11, {"n": 11})


def test_a_listing_that_lags_behind_hides_no_description(tmp_path, monkeypatch):
    said = Descriptions(Durable(str(tmp_path)))
    for number in range(3):
        assert said.follow(said.newest(), {"n": number})
    monkeypatch.setattr(Durable, "names", lambda self: [])
    assert said.newest() == Description(2, {"n": 2})


def test_a_driver_whose_description_comes_too_late_is_told(tmp_path):
    place = Checkpoint(Durable(str(tmp_path / "ck")))
    place.open(keyed(tg.count()))
    found = place.descriptions.newest()
    place.redescribe({**found.document, "format": 2}, found)
    place.redescribe({**found.document, "format": 2}, found)  # the same again is no conflict
    with pytest.raises(TidegateError, match="another driver has changed the description of"):
        place.redescribe({**found.document, "format": 3}, found)


def test_a_predecessor_may_change_the_description_until_its_successor_does(tmp_path):
    """Paused before its write, it goes on when the successor has read the description."""
    place = Checkpoint(Durable(str(tmp_path / "ck")))
    predecessor = iter([kept("n int")])

    def check():
        for graph in predecessor:
            place.open(graph)

    opened = place.open(kept("n long"), check=check)
    assert [len(one) for one in opened.earlier.values()] == [1], "its layout stays known"
    assert place.descriptions.newest().number == 1
