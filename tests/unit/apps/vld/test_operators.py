"""The operators as functions of tables: one row per frame, and the time that each frame takes."""

import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("cv2")

from tidegate.apps.vld.features import extract
from tidegate.apps.vld.frames import NONE, frame
from tidegate.apps.vld.logos import LOGOS
from tidegate.apps.vld.operators import LogoCount, extractor, frames, matcher, weights
from tidegate.apps.vld.reference import logos_in, matches
from tidegate.pipelines.keyed import KeyedBatch

PAIRS = pa.schema([("frame", pa.int64()), ("logos", pa.list_(pa.int32()))])


def numbered(*numbers: int) -> pa.Table:
    return pa.table({"seq": pa.array(numbers, pa.int64())})


def aggregated(rows: list[tuple[int, list[int]]]) -> list[tuple[int, int]]:
    """The output for rows of (frame, logos of its pairs)."""
    table = pa.table([[n for n, _ in rows], [logos for _, logos in rows]], schema=PAIRS)
    keys, row_key = np.unique(table["frame"].to_numpy(), return_inverse=True)
    bound = LogoCount().bind(PAIRS, ("frame",))
    batch = KeyedBatch(
        rows=table,
        keys=pa.table({"frame": keys}),
        row_key=row_key,
        state=pa.schema([PAIRS.field("frame"), *bound.state]).empty_table(),
        state_key=np.empty(0, dtype=np.int64),
        at_us=0,
    )
    update = bound.update(batch)
    assert update.upserts is None  # nothing is kept of a frame
    assert update.output is not None
    assert update.output.schema == bound.output
    return sorted(zip(*(column.to_pylist() for column in update.output.columns), strict=True))


@given(st.lists(st.lists(st.integers(0, LOGOS - 1), max_size=40), min_size=1, max_size=6))
def test_a_logo_is_there_if_enough_features_match(frames_logos: list[list[int]]) -> None:
    wanted = [
        (number, logo)
        for number, logos in enumerate(frames_logos)
        for logo in logos_in(logos) or [NONE]
    ]
    assert aggregated(list(enumerate(frames_logos))) == wanted


def test_the_pairs_of_a_frame_are_counted_together() -> None:
    assert aggregated([(5, [2] * 3), (4, [2] * 3), (5, [2] * 3)]) == [(4, NONE), (5, 2)]


def test_the_operators_find_what_a_loop_finds() -> None:
    features = extractor(None)(frames(1)(numbered(0, 3, 7)))
    pairs = matcher(None)(features)
    assert pairs["frame"].to_pylist() == [0, 3, 7]
    assert pairs["logos"].to_pylist() == [matches(extract(frame(n, 1))) for n in (0, 3, 7)]


def test_weights_vary_and_are_one_on_average() -> None:
    told = weights(extractor(None)(frames(2)(numbered(*range(60)))))
    assert told.mean() == pytest.approx(1.0, abs=0.15)
    assert told.var() > 0.2


def test_a_stretched_frame_takes_time_by_its_features() -> None:
    images = frames(1)(numbered(0, 1))
    features = extractor(None)(images)
    least_s = 0.1 * float(weights(features).sum())
    for operator, rows in ((extractor(0.1), images), (matcher(0.1), features)):
        begun_s = time.perf_counter()
        operator(rows)
        assert time.perf_counter() - begun_s >= least_s
