"""Versions that are kept by number or by time can all be read, and the others cost no room."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.keyed_store import SHARDS, Store
from tests.unit.spark.savepoint.test_savepoint import Made, paths
from tests.unit.spark.state.test_evolution import KEY, LAYOUTS, ROWS, adding
from tidegate.errors import AskedWrongly
from tidegate.spark.batch.older_versions import OlderVersions, tidy_older
from tidegate.spark.savepoint.index import read_index
from tidegate.spark.savepoint.make import make_savepoint
from tidegate.spark.savepoint.restore import origin_of, restore
from tidegate.spark.state.files import Durable
from tidegate.spark.state.kept_versions import PARTS, KeptVersions
from tidegate.spark.state.manifest import Manifests

rules = st.integers(3, 12).map(KeptVersions.asked) | st.integers(1, 500).map(
    lambda us: KeptVersions(3, us)
)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=60), rules)
def test_what_goes_does_not_depend_on_who_looked_when(gaps, rule):
    clocks = dict(enumerate(np.cumsum(gaps).tolist()))
    seen: set[int] = set()
    for batch in clocks:  # the cleaner looks after every batch, and what is gone is gone
        there = seen | {batch}
        seen = rule.of({one: clocks[one] for one in there})
        assert set(sorted(there)[-rule.count :]) <= seen
        assert len(seen) <= rule.count + PARTS + 1
    assert seen == rule.of(clocks)
    if rule.for_us is not None:
        part_us = max(1, rule.for_us // PARTS)
        since_us = max(clocks.values()) - rule.for_us
        recent = {us // part_us for us in clocks.values() if us >= since_us}
        assert {clocks[batch] // part_us for batch in seen} >= recent


def test_a_time_or_a_number_is_asked_for():
    assert KeptVersions.asked(3).is_default
    assert KeptVersions.asked("7 days") == KeptVersions(3, 7 * 86_400_000_000)
    for wrong, said in [
        (2, "versions=2: give 3 to 1000"),
        (1001, "give 3 to 1000, or a time such as"),
        ("soon", "versions: .*, or a number of versions"),
    ]:
        with pytest.raises(AskedWrongly, match=said):
            KeptVersions.asked(wrong)


batch = st.tuples(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 20)), max_size=6),
    st.integers(0, 1000),  # seed of the route
    st.integers(0, 40),  # microseconds since the batch before
)


@settings(max_examples=20, deadline=None)
@given(st.lists(batch, min_size=6, max_size=24), rules)
def test_every_kept_version_is_read_as_it_was(batches, rule):
    with tempfile.TemporaryDirectory() as directory:
        store = Keeping(Path(directory), rule)
        now_us, truths = 0, {}
        for number, (rows, seed, passed_us) in enumerate(batches):
            now_us += passed_us
            route = np.random.default_rng(seed).integers(0, 2, SHARDS).tolist()
            table = pa.Table.from_pylist([{"k": k, "add": a} for k, a in rows], ROWS)
            store.run(number, table, route, [0, 1], at_us=now_us)
            truths[number] = sorted(store.state(number).to_pylist(), key=str)
        committed = store.manifests.committed()
        assert set(committed) == rule.of({one: store.manifests.at_us(one) for one in committed})
        needed = set()
        for one in committed:
            assert sorted(store.state(one).to_pylist(), key=str) == truths[one]
            needed |= store.manifests.load(one).versions["op"].names
        assert needed == set(store.durable.names())


class Keeping(Store):
    """A store whose cleaner keeps older versions."""

    def __init__(self, root: Path, rule: KeptVersions) -> None:
        super().__init__(root, adding(LAYOUTS[1]), KEY)
        self.older = OlderVersions(Durable(str(root / "segment")), self.manifests, rule)

    def clean(self, batch_id: int) -> None:
        self.older.clean(batch_id)


@pytest.mark.parametrize("at", range(12))
def test_a_driver_and_its_successor_may_clean_up_at_once(tmp_path, monkeypatch, at):
    """Whenever the one is paused, what the other removes fails neither, and nothing else goes."""
    made = Made(tmp_path / "ck")
    for number in range(8):
        made.batch(number)
    segment = made.place.segment("main")
    manifests = Manifests(segment.below("manifests"), made.place.states)
    first, second = (OlderVersions(segment, manifests, KeptVersions(count)) for count in (6, 4))
    plain, reads = Durable.read_json, iter(range(100))

    def read(self, name):
        if next(reads) == at:
            second.clean(7)
        return plain(self, name)

    monkeypatch.setattr(Durable, "read_json", read)
    first.clean(6)
    monkeypatch.undo()
    second.clean(7)
    assert manifests.committed() == [4, 5, 6, 7]
    for number in manifests.committed():
        manifests.verify(manifests.load(number).versions)


def test_a_pipeline_goes_back_to_a_version_that_spark_has_forgotten(tmp_path):
    made = Made(tmp_path / "ck")
    segment = made.place.segment("main")
    manifests = Manifests(segment.below("manifests"), made.place.states)
    kept = OlderVersions(segment, manifests, KeptVersions(6))
    for number in range(10):
        made.batch(number)
        made.write(f"segments/main/counts/{number:010d}.json", b"{}")
        kept.clean(number)
        for log in ("spark/offsets", "spark/commits"):  # what Spark would do after a hundred
            (made.root / f"segments/main/{log}/{number - 4}").unlink(missing_ok=True)
        for kind, name in (
            ("plans", f"{number - 4:010d}-000001-aaaa"),
            ("counts", f"{number - 4:010d}"),
        ):
            (made.root / f"segments/main/{kind}/{name}.json").unlink(missing_ok=True)
    assert kept.manifests.committed() == [4, 5, 6, 7, 8, 9]
    older = {path.split("/")[3] for path in paths(made.root) if "/older/" in path}
    assert older == {f"{number:010d}" for number in (4, 5, 6)}

    make_savepoint(str(made.root), str(tmp_path / "sp"), version=4)
    assert dict(read_index(str(tmp_path / "sp")).batches) == {"main": 4}
    restore(
        origin_of(str(tmp_path / "sp"), Durable(str(tmp_path / "new"))),
        Durable(str(tmp_path / "new")),
    )
    there = paths(tmp_path / "new" / "segments")
    assert {path for path in there if "sources" not in path} == {
        "main/manifests/0000000004.json",
        "main/plans/0000000004-000001-aaaa.json",
        "main/counts/0000000004.json",
        "main/spark/metadata",
        *(f"main/spark/{log}/{number}" for log in ("offsets", "commits") for number in (3, 4)),
    }
    manifests.directory.remove_all(f"{number:010d}.json" for number in (4, 5))
    tidy_older(segment, manifests)
    older = {path.split("/")[3] for path in paths(made.root) if "/older/" in path}
    assert older == {"0000000006"}
