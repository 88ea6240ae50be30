"""Features and matching pairs: the matrices find what OpenCV's brute force finds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

pytest.importorskip("cv2")

import cv2

from tidegate.apps.vld.features import LENGTH, MOST_FEATURES, extract, logo_features
from tidegate.apps.vld.frames import HEIGHT, WIDTH, frame
from tidegate.apps.vld.logos import LOGOS
from tidegate.apps.vld.matching import MATCHES, matching_logos
from tidegate.apps.vld.reference import matches

anything = arrays(np.uint8, st.tuples(st.integers(0, 4), st.just(LENGTH)))


@st.composite
def near_logos(draw: st.DrawFn) -> np.ndarray:
    """Features of logos, each changed a little, some of them past the thresholds."""
    known = np.concatenate(logo_features()).astype(np.int64)
    chosen = known[draw(st.lists(st.integers(0, len(known) - 1), min_size=1, max_size=6))]
    most = draw(st.sampled_from([0, 5, 25, 40, 60]))
    change = draw(arrays(np.int64, chosen.shape, elements=st.integers(-most, most)))
    return np.clip(chosen + change, 0, 255).astype(np.uint8)


@given(st.one_of(anything, near_logos()))
@settings(max_examples=60, deadline=None)
def test_the_pairs_are_those_of_brute_force(found: np.ndarray) -> None:
    assert matching_logos(found).tolist() == matches(found)


def test_a_logo_matches_itself() -> None:
    for logo, features in enumerate(logo_features()):
        found = matching_logos(features)
        assert (found == logo).sum() > 2 * MATCHES
        assert set(found.tolist()) == {logo}


def test_bytes_hold_a_descriptor_exactly() -> None:
    image = frame(3, seed=1)
    found = extract(image)
    assert 0 < len(found) <= MOST_FEATURES + 5  # equally strong ones may be kept beyond the limit
    _, exact = cv2.SIFT_create(nfeatures=MOST_FEATURES).detectAndCompute(image, None)
    np.testing.assert_array_equal(found, exact)
    np.testing.assert_array_equal(found, extract(image))


def test_an_empty_picture_has_no_features_and_no_pairs() -> None:
    found = extract(np.full((HEIGHT, WIDTH), 128, dtype=np.uint8))
    assert found.shape == (0, LENGTH)
    assert len(matching_logos(found)) == 0
    assert matches(found) == []
    assert len(logo_features()) == LOGOS
