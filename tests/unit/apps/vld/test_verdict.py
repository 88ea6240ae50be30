"""The verifier: it accepts the reference's answers, and finds every kind of wrong one."""

import pyarrow as pa
import pytest

pytest.importorskip("cv2")

from tidegate.apps.vld import verdict
from tidegate.apps.vld.frames import NONE
from tidegate.apps.vld.reference import Detections
from tidegate.apps.vld.verdict import emitted, expected_rows, judged

FRAMES, SEED = 30, 1


@pytest.fixture(scope="module")
def right() -> Detections:
    return expected_rows(FRAMES, SEED)


@pytest.fixture
def known(right, monkeypatch) -> Detections:
    """The right answers, which the verifier then need not compute again."""
    monkeypatch.setattr(verdict, "expected_rows", lambda arrived, seed: right.copy())
    return right.copy()


def test_the_reference_finds_nearly_all_logos(known) -> None:
    found = judged(known, FRAMES, SEED)
    assert found.correct
    assert found.figures["precision"] >= 0.9
    assert found.figures["recall"] >= 0.9
    assert found.figures["frames"] == FRAMES
    assert {number for number, _ in known} == set(range(FRAMES))


def test_a_missing_row_is_found(known) -> None:
    del known[next(one for one in known if one[1] == NONE)]
    found = judged(known, FRAMES, SEED)
    assert not found.correct
    assert "1 missing, 0 too many" in found.said


def test_a_row_that_is_there_twice_is_found(known) -> None:
    known[next(iter(known))] += 1
    found = judged(known, FRAMES, SEED)
    assert not found.correct
    assert "0 missing, 1 too many" in found.said


def test_a_wrong_logo_is_found(known) -> None:
    number, logo = next(one for one in known if one[1] != NONE)
    del known[number, logo]
    known[number, (logo + 1) % 16] += 1
    assert not judged(known, FRAMES, SEED).correct


def test_a_poor_detector_is_found_although_both_agree(known, monkeypatch) -> None:
    monkeypatch.setattr(verdict, "pasted", lambda numbers, seed: (numbers % 16)[:, None])
    found = judged(known, FRAMES, SEED)
    assert not found.correct
    assert "equal those of a reference" in found.said
    assert found.figures["precision"] < 0.9


def test_the_rows_of_a_sink_are_counted() -> None:
    rows = pa.table({"frame": [3, 3, 4], "logo": pa.array([5, 5, NONE], pa.int32())})
    assert emitted(rows) == {(3, 5): 2, (4, NONE): 1}
    assert emitted(None) == {}
