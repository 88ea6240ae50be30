"""Table II: the paper's peaks, and what capacity files say of the applications."""

from pathlib import Path

import pytest

from tidegate.errors import AskedWrongly
from tidegate.models.capacity.measured import CapacitySample, MeasuredCapacity
from tidegate.papers.figure import Asked
from tidegate.papers.mst import capacity_files
from tidegate.papers.mst.capacity_files import keep_capacity, kept_capacities
from tidegate.papers.mst.peaks import table_2, told
from tidegate.papers.mst.spark_applications import CATALOGUE, asked_apps, row_bytes


def capacity(rows_per_s: float = 30_000.0) -> MeasuredCapacity:
    samples = (
        CapacitySample(cores=1, rows_per_s=2_000.0),
        CapacitySample(cores=16, rows_per_s=rows_per_s),
        CapacitySample(cores=16, rows_per_s=rows_per_s + 200.0),
    )
    return MeasuredCapacity(pipeline="grep", samples=samples)


def test_without_measurements_the_peaks_are_there() -> None:
    found = told({})
    assert len(found.compared) == 8
    assert found.compared[0].paper == 32.0
    assert str(found.compared[0].ours).startswith("32 on 9")
    assert found.compared[-1].paper == 0.83
    assert [aim.met for aim in found.aims] == [True]
    assert "vht" in found.notes[-1]


def test_a_capacity_in_rows_is_told_in_megabytes() -> None:
    found = told({"grep": capacity()})
    assert len(found.compared) == 9
    size = row_bytes("grep")
    megabytes = f"{30_100 * size / 1e6:.3g}"
    assert found.compared[1].ours == f"{megabytes} on 16 cores (30,100 rows/s of {size:.0f} bytes)"
    assert "grep" not in found.notes[-1]


def test_rows_have_the_size_of_what_they_hold() -> None:
    assert row_bytes("grep") == pytest.approx(80.0, abs=2.0)
    assert row_bytes("page-view") == pytest.approx(34.4, abs=0.5)
    assert row_bytes("rolling-flight-distances") == 72.0, "nine fields of eight bytes"
    assert row_bytes("vht") == 16.0, "packed attributes and a label"
    assert 40.0 < row_bytes("rolling-hashtag-count") < 140.0


def test_capacities_are_kept_and_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capacity_files, "KEPT", tmp_path / "kept")
    assert kept_capacities() == {}
    keep_capacity("grep", capacity())
    assert kept_capacities() == {"grep": capacity()}
    assert len(table_2(Asked(extra={"capacity": str(tmp_path / "kept")})).compared) == 9
    with pytest.raises(AskedWrongly, match="There is no directory"):
        table_2(Asked(extra={"capacity": str(tmp_path / "elsewhere")}))


def test_an_application_has_the_name_of_its_curve_and_that_of_the_catalogue() -> None:
    assert asked_apps({}, ("grep", "vht")) == ("grep", "vht")
    assert asked_apps({"app": "hashtags"}, ()) == ("rolling-hashtag-count",)
    assert asked_apps({"app": "rolling-hashtag-count"}, ()) == ("rolling-hashtag-count",)
    for name in CATALOGUE:
        assert asked_apps({"app": CATALOGUE[name]}, ()) == (name,)
    with pytest.raises(AskedWrongly, match="did you mean 'grep'"):
        asked_apps({"app": "grap"}, ())
