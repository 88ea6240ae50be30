"""The commit protocol under faults: state and output of every seed equal those of a sequential run.

The last tests bring back defects that Tidegate once had: a search that could not find them would
prove nothing.
"""

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.faults import world
from tests.faults.search import defect_of, first_defect, shrunk
from tests.faults.world import Course, World
from tidegate.errors import TidegateError
from tidegate.spark.batch import transaction
from tidegate.spark.batch.channel import Log
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.batch.plan import Plans
from tidegate.spark.batch.transaction import Transactions
from tidegate.spark.owner.lease import Lease
from tidegate.spark.savepoint.contents import contents
from tidegate.spark.state.files import Missing
from tidegate.spark.state.manifest import Manifest, Manifests
from tidegate.spark.state.version import StateFile

SEEDS = int(os.environ.get("TIDEGATE_FAULT_SEEDS", "2000"))
PARTS = 8


def courses() -> Iterator[Course]:
    return (Course.of(seed) for seed in range(3000))


@pytest.mark.parametrize("part", range(PARTS))
def test_every_seed_is_as_a_sequential_run(part):
    wrong = first_defect(Course.of(seed) for seed in range(part, SEEDS, PARTS))
    assert wrong is None, f"{shrunk(wrong)}\n{defect_of(shrunk(wrong))}"


def test_two_claims_of_one_epoch_on_an_object_store_keep_the_plan_of_the_first():
    """Found by reading: a claim in the middle of its upload when another driver claimed the same
    epoch took its place, and the plan of the other one was not looked for."""
    kinds = frozenset({"pause", "wait"})
    course = Course(100186, manner="s3", batches=4, cut=False, drivers=2, faults=2, kinds=kinds)
    assert defect_of(course) is None


def test_a_seed_has_one_course_of_events():
    traces = []
    for _ in range(2):
        life = World(Course.of(5))
        life.run()
        traces.append([line.split("/")[0] for line in life.trace])
    assert traces[0] == traces[1]


def test_the_search_finds_lost_manifests_that_reset_the_state(monkeypatch):
    """As it was: without manifests a segment began with empty state, and said nothing."""

    def no_check(segment, checkpoint):
        folder = checkpoint.segment(segment.name).below("manifests")
        committed = Manifests(folder, checkpoint.states).committed()
        return committed[-1] if committed else None

    def load_or_empty(self, batch_id):
        try:
            return plain(self, batch_id)
        except Missing:
            return Manifest({}, {})

    plain = Manifests.load
    monkeypatch.setattr(transaction, "newest_committed", no_check)
    monkeypatch.setattr(Manifests, "load", load_or_empty)
    found = first_defect(
        one for one in courses() if "lose" in one.kinds and one.lost == "manifests"
    )
    assert found is not None
    told = str(defect_of(found))
    assert "sequential run" in told or "the sink of 'main' got different rows" in told


def test_the_search_finds_a_driver_that_wakes_up_and_is_not_fenced(monkeypatch):
    """As it was: no lease, one plan per batch, and whoever writes last wins."""
    monkeypatch.setattr(Lease, "check", lambda self: None)
    monkeypatch.setattr(Lease, "earlier_marks", lambda self: iter(()))
    monkeypatch.setattr(Transactions, "plans", property(lambda self: Plans(self._folder("plans"))))

    def commit(self, batch_id, versions, channels=None):
        document = {
            "batch": batch_id,
            "operators": {name: version.to_json() for name, version in versions.items()},
            "channels": dict(channels or {}),
        }
        self.directory.write_json(f"{batch_id:010d}.json", document)
        return Manifest(dict(versions), dict(channels or {}))

    monkeypatch.setattr(Manifests, "commit", commit)
    found = first_defect(one for one in courses() if "pause" in one.kinds)
    assert found is not None
    course = shrunk(found)
    assert "pause" in course.kinds
    assert len(course.kinds) <= len(found.kinds)
    assert defect_of(course) is not None


def test_the_search_finds_a_channel_that_trusts_a_listing(monkeypatch):
    """A reader that takes a listing for complete skips a batch that the listing leaves out."""

    def trusting(self, start):
        for batch_id in self._listed():
            if batch_id >= start:
                found = self.read(batch_id)
                if found is not None:
                    yield found

    monkeypatch.setattr(Log, "waiting", trusting)
    monkeypatch.setattr(
        Log,
        "between",
        lambda self, start, end: [o for o in trusting(self, start) if o.batch_id < end],
    )
    stale = replace(Course(0), faults=12, batches=6, kinds=frozenset({"wait", "stale"}))
    assert first_defect(replace(stale, seed=seed) for seed in range(500)) is not None


def test_the_search_finds_old_files_that_are_read_with_new_columns(monkeypatch):
    monkeypatch.setattr(StateFile, "layout", property(lambda self: 99))
    found = first_defect(one for one in courses() if one.evolves)
    assert found is not None
    assert shrunk(found).evolves


def test_the_search_finds_a_savepoint_without_the_plan_of_a_batch_that_was_begun(monkeypatch):
    def without(root, description):
        found = contents(root, description)
        return replace(found, small=tuple(one for one in found.small if "/plans" not in one.folder))

    monkeypatch.setattr(world, "contents", without)
    found = first_defect(one for one in courses() if one.saved and "kill" in one.kinds)
    assert found is not None
    assert "different rows" in str(defect_of(found))


def test_the_search_finds_resharded_state_that_is_taken_for_complete_too_early(monkeypatch):
    """The description must be the last to be written: what it names may not be there yet."""

    def first(root, wanted, hashes, check):
        place = Checkpoint(root)
        found = place.descriptions.newest()
        said = found.document
        operators = {
            name: {**one, "shards": wanted[name], "kept_as": f"{name}.{wanted[name]}"}
            for name, one in said["operators"].items()
        }
        place.redescribe({**said, "operators": operators}, found)

    monkeypatch.setattr(world, "reshard_owned", first)
    found = first_defect(one for one in courses() if one.resharded)
    assert found is not None
    assert shrunk(found).resharded


def test_an_unknown_error_of_a_driver_is_a_defect(monkeypatch):
    def broken(self, batch_id, *_):
        raise TidegateError("out of order")

    monkeypatch.setattr(Manifests, "commit", broken)
    assert "out of order" in str(defect_of(Course.of(0)))
