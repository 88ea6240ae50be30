"""What a savepoint has, that it is checked to the byte, and that nothing half done is used."""

import json
from pathlib import Path

import pytest

from tests.faults.pipeline import SHARDS, graph
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.batch.channel import Log
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.owner import owner as owners
from tidegate.spark.savepoint import make, restore
from tidegate.spark.savepoint.copy import Differs
from tidegate.spark.savepoint.index import read_index
from tidegate.spark.savepoint.make import make_savepoint, savepoint_of_run
from tidegate.spark.savepoint.restore import origin_of
from tidegate.spark.state.chains import Chains
from tidegate.spark.state.files import Durable
from tidegate.spark.state.manifest import Manifests
from tidegate.spark.state.version import StateFile, Version


class Made:
    """A checkpoint as a run leaves it, with files of any content."""

    def __init__(self, root: Path, cut: bool = False) -> None:
        self.root, self.cut = root, cut
        self.place = Checkpoint(Durable(str(root)))
        self.place.open(graph(cut))

    def write(self, path: str, content: bytes) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(content)

    def batch(self, number: int, segment: str = "main", *, done: bool = True) -> None:
        """A batch of a segment: begun, and committed if it is done."""
        folder, operator = f"segments/{segment}", "sums" if segment == "main" else "seen"
        self.write(f"{folder}/spark/metadata", b"{}")
        self.write(f"{folder}/spark/sources/0/{number}", b"source")
        self.write(f"{folder}/spark/offsets/{number}", b"offset")
        self.write(f"{folder}/plans/{number:010d}-000001-aaaa.json", b"{}")
        if not done:
            return
        files = []
        for age in (number - 1, number):
            if age >= 0:
                name = f"{age:010d}-00000-{operator}.arrow"
                self.write(f"state/{operator}/{name}", b"x" * (100 + age))
                files.append(StateFile(name, 100 + age, ()))
        version = Version(SHARDS, tuple(files), Chains.none(SHARDS))
        folder_ = self.place.segment(segment).below("manifests")
        folder_.make()
        Manifests(folder_, self.place.states).commit(number, {operator: version})
        self.write(f"{folder}/spark/commits/{number}", b"commit")


def paths(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def made(tmp_path):
    found = Made(tmp_path / "ck")
    for number in range(5):
        found.batch(number)
    found.batch(5, done=False)
    return found


def saved(made: Made, tmp_path: Path, **options) -> set[str]:
    target = tmp_path / "sp"
    make_savepoint(str(made.root), str(target), **options)
    return paths(target)


def test_it_has_the_last_version_and_the_batch_that_was_begun(made, tmp_path):
    spark = "segments/main/spark"
    assert saved(made, tmp_path) == {
        "savepoint.json",
        "segments/main/manifests/0000000004.json",
        "segments/main/plans/0000000004-000001-aaaa.json",
        "segments/main/plans/0000000005-000001-aaaa.json",
        f"{spark}/metadata",
        *(f"{spark}/offsets/{number}" for number in (3, 4, 5)),
        *(f"{spark}/commits/{number}" for number in (3, 4)),
        *(f"{spark}/sources/0/{number}" for number in range(6)),
        "state/sums/0000000003-00000-sums.arrow",
        "state/sums/0000000004-00000-sums.arrow",
    }
    found = read_index(str(tmp_path / "sp"))
    assert (found.pipeline, dict(found.batches)) == ("faults", {"main": 4})
    assert (
        found.size_bytes
        == sum((tmp_path / "sp" / path).stat().st_size for path in paths(tmp_path / "sp"))
        - (tmp_path / "sp" / "savepoint.json").stat().st_size
    )


def test_of_an_older_version_it_has_nothing_that_came_later(made, tmp_path):
    found = saved(made, tmp_path, version=3)
    assert "state/sums/0000000002-00000-sums.arrow" in found
    later = [path for path in found if path[-20:].startswith("00000000") and "04" in path]
    assert not later
    assert "segments/main/spark/offsets/4" not in found
    assert "segments/main/spark/offsets/3" in found
    with pytest.raises(AskedWrongly, match="no version 9; kept versions: 0, 1, 2, 3, 4"):
        make_savepoint(str(made.root), str(tmp_path / "other"), version=9)
    (made.root / "segments/main/spark/offsets/2").unlink()
    with pytest.raises(AskedWrongly, match="Spark no longer has the offsets of batch 2"):
        make_savepoint(str(made.root), str(tmp_path / "other"), version=2)


def test_a_version_from_before_the_state_was_resharded_is_refused(made, tmp_path):
    path = made.root / "pipeline.json"
    said = json.loads(path.read_text())
    said["operators"]["sums"]["kept_as"] = "sums.2"
    path.write_text(json.dumps(said))
    with pytest.raises(AskedWrongly, match="version 3 is older than the state of operator 'sums'"):
        saved(made, tmp_path, version=3)


def test_a_checkpoint_that_begins_with_it_is_the_one_that_was_saved(made, tmp_path):
    for name in ("learned.json", "records.jsonl"):
        made.write(name, b"{}")
    saved(made, tmp_path)
    new = Durable(str(tmp_path / "new"))
    origin = origin_of(str(tmp_path / "sp"), new)
    restore.restore(origin, new)
    there = paths(tmp_path / "new")
    assert there == {file.path for file in origin.files} | {"pipeline.json"}
    assert "learned.json" in there and "records.jsonl" not in there
    for path in there:
        assert (tmp_path / "new" / path).read_bytes() == (made.root / path).read_bytes()
    assert origin_of(str(tmp_path / "sp"), new) is None, "it acts once"
    assert origin_of(None, Durable(str(tmp_path / "third"))) is None


@pytest.mark.parametrize("damage", [b"y" * 104, b"x" * 103, None])
def test_a_damaged_savepoint_starts_nothing(made, tmp_path, damage):
    saved(made, tmp_path)
    path = tmp_path / "sp" / "state/sums/0000000004-00000-sums.arrow"
    path.unlink() if damage is None else path.write_bytes(damage)
    new = Durable(str(tmp_path / "new"))
    with pytest.raises(TidegateError, match=r"0000000004-00000-sums.arrow"):
        restore.restore(origin_of(str(tmp_path / "sp"), new), new)
    with pytest.raises(AskedWrongly, match="incomplete copy of a savepoint; start again with the"):
        Checkpoint(new).open(graph(False))
    if damage is not None:
        path.write_bytes(b"x" * 104)
        restore.restore(origin_of(str(tmp_path / "sp"), new), new)
        assert Checkpoint(new).open(graph(False)).description() == made.place.description()
        assert "restoring.json" not in paths(tmp_path / "new")


def test_an_incomplete_copy_goes_on_with_the_same_savepoint_only(made, tmp_path, monkeypatch):
    saved(made, tmp_path)
    new = Durable(str(tmp_path / "new"))
    monkeypatch.setattr(restore, "copy_one", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        restore.restore(origin_of(str(tmp_path / "sp"), new), new)
    make_savepoint(str(made.root), str(tmp_path / "sp2"))
    assert origin_of(str(tmp_path / "sp"), new) is not None
    with pytest.raises(AskedWrongly, match="about to be made of another savepoint"):
        origin_of(str(tmp_path / "sp2"), new)


def test_nothing_is_mixed_with_what_is_there(made, tmp_path):
    saved(made, tmp_path)
    sp = str(tmp_path / "sp")
    with pytest.raises(AskedWrongly, match="is a savepoint, which stays as it is"):
        origin_of(sp, Durable(sp))
    (made.root / "pipeline.json").unlink()
    with pytest.raises(AskedWrongly, match="with the work of earlier runs, but its pipeline"):
        origin_of(sp, made.place.root)


def test_what_a_killed_attempt_left_is_written_again(made, tmp_path, monkeypatch):
    monkeypatch.setattr(make, "_completed", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        saved(made, tmp_path)
    monkeypatch.undo()
    with pytest.raises(
        AskedWrongly, match=r"sp is no complete savepoint: it has no savepoint.json"
    ):
        read_index(str(tmp_path / "sp"))
    made.batch(5)
    saved(made, tmp_path)
    assert read_index(str(tmp_path / "sp")).batches == {"main": 5}


def test_a_savepoint_is_neither_overwritten_nor_started_on(made, tmp_path):
    saved(made, tmp_path)
    with pytest.raises(AskedWrongly, match="is a savepoint already"):
        saved(made, tmp_path)
    with pytest.raises(AskedWrongly, match="is a checkpoint; give another directory"):
        make_savepoint(str(made.root), str(made.root))
    with pytest.raises(AskedWrongly, match="is a savepoint, which stays as it is; give it as sav"):
        Checkpoint(Durable(str(tmp_path / "sp"))).open(graph(False))


def test_one_of_a_newer_release_is_refused(made, tmp_path):
    saved(made, tmp_path)
    path = tmp_path / "sp" / "savepoint.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 2}))
    with pytest.raises(TidegateError, match="has format 2, and this release of Tidegate reads 1"):
        read_index(str(tmp_path / "sp"))


def test_a_truncated_state_file_is_found_while_it_is_saved(made, tmp_path):
    made.write("state/sums/0000000004-00000-sums.arrow", b"x" * 50)
    with pytest.raises(Differs, match="has 50 bytes, expected 104"):
        saved(made, tmp_path)
    assert "savepoint.json" not in paths(tmp_path / "sp")


def test_offsets_and_manifests_of_different_copies_are_found_while_it_is_saved(made, tmp_path):
    (made.root / "segments/main/manifests/0000000004.json").unlink()
    with pytest.raises(TidegateError, match="has committed batch 4, but its manifest"):
        saved(made, tmp_path)


def test_a_channel_has_what_was_not_read_yet(tmp_path):
    made = Made(tmp_path / "ck", cut=True)
    log = Log(made.place.channel("between"))
    log.make()
    for number in range(4):
        made.batch(number)
        name = f"{number:010d}-00000-000-aa.arrow"
        log.data.write(name, b"rows")
        log.commit(number, number - 1, [(name, 1)])
    made.batch(0, "between")
    log.note_read(2)
    log.data.remove("0000000000-00000-000-aa.arrow")  # the reader removes what it has read
    found = {path for path in saved(made, tmp_path) if path.startswith("channels")}
    assert found == {
        "channels/between/position.json",
        *(f"channels/between/commits/{number:010d}.json" for number in (1, 2, 3)),
        *(f"channels/between/data/{number:010d}-00000-000-aa.arrow" for number in (1, 2, 3)),
    }
    log.data.remove("0000000003-00000-000-aa.arrow")
    with pytest.raises(TidegateError, match=r"0000000003-00000-000-aa.arrow is missing"):
        make_savepoint(str(made.root), str(tmp_path / "other"))
    log.data.write("0000000003-00000-000-aa.arrow", b"rows")
    log.commit(4, 3, [("0000000004-00000-000-aa@topic:0:1-3", 3)])
    with pytest.raises(TidegateError, match="rows of the channel 'between' are in a Kafka topic"):
        make_savepoint(str(made.root), str(tmp_path / "other"))


@pytest.fixture
def in_use(made):
    held = owners.take(owners.Epochs(made.place.root.below("owner")), "faults")
    yield made
    held.release()


def test_a_pipeline_that_runs_elsewhere_is_followed_until_a_version_is_complete(
    in_use, tmp_path, monkeypatch
):
    plain, copied = make.copy_all, []

    def while_it_runs(source, target, items, told=lambda size: None):
        items = list(items)
        if any(item.folder == "state/sums" for item in items):
            newest = 5 + len(copied)
            if len(copied) < 3:  # a batch is committed, and the version before the last one goes
                in_use.batch(newest)
                (in_use.root / f"state/sums/{newest - 2:010d}-00000-sums.arrow").unlink()
            copied.append(items)
        return plain(source, target, items, told)

    monkeypatch.setattr(make, "copy_all", while_it_runs)
    found = saved(in_use, tmp_path)
    batch = read_index(str(tmp_path / "sp")).batches["main"]
    assert batch > 4
    names = {path for path in found if path.startswith("state")}
    assert names == {f"state/sums/{number:010d}-00000-sums.arrow" for number in (batch - 1, batch)}
    assert all(in_use.root.joinpath(name).exists() for name in names)
    assert f"segments/main/spark/offsets/{batch + 1}" not in found


def test_a_file_that_is_lost_for_good_ends_the_following(in_use, tmp_path):
    (in_use.root / "state/sums/0000000003-00000-sums.arrow").unlink()
    with pytest.raises(TidegateError, match=r"0000000003-00000-sums.arrow is missing"):
        saved(in_use, tmp_path)


def test_several_segments_that_run_elsewhere_are_refused(tmp_path):
    made = Made(tmp_path / "ck", cut=True)
    made.batch(0)
    held = owners.take(owners.Epochs(made.place.root.below("owner")), "faults")
    try:
        with pytest.raises(AskedWrongly, match=r"only the process .* run.savepoint\(target\)"):
            saved(made, tmp_path)
    finally:
        held.release()
    with pytest.raises(AskedWrongly, match="do not belong together by their numbers"):
        saved(made, tmp_path, version=0)


class Held:
    """Notes whether it is entered."""

    def __init__(self, also: "Held | None" = None) -> None:
        self.within, self.also = False, also

    def __enter__(self) -> None:
        self.within = True
        assert self.also is None or self.also.within

    def __exit__(self, *_) -> None:
        self.within = False


def test_a_run_waits_for_the_small_files_only_and_nothing_is_removed_meanwhile(
    made, tmp_path, monkeypatch
):
    cleaning = Held()
    batches = Held(cleaning)
    plain, seen = make.copy_all, []

    def noted(source, target, items, *more):
        items = list(items)
        seen.append((items[0].folder.startswith("state"), batches.within, cleaning.within))
        return plain(source, target, items, *more)

    monkeypatch.setattr(make, "copy_all", noted)
    savepoint_of_run(made.place.root, tmp_path / "sp", batches, cleaning)
    assert seen == [(False, True, True), (True, False, True)]
