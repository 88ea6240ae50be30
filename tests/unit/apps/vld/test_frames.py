"""Frames: pure functions of their number, with the logos that the verifier knows of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("cv2")

from tidegate.apps.vld.frames import HEIGHT, MOST_LOGOS, NONE, WIDTH, frame, pasted
from tidegate.apps.vld.logos import LOGOS, SIDE, logo_images


@given(st.integers(0, 2**40), st.integers(0, 2**31))
def test_the_logos_of_a_frame_do_not_depend_on_its_neighbours(number: int, seed: int) -> None:
    together = pasted(np.arange(number, number + 5), seed)
    alone = np.concatenate([pasted(np.array([one]), seed) for one in range(number, number + 5)])
    np.testing.assert_array_equal(together, alone)


def test_frames_have_up_to_three_different_logos() -> None:
    logos = pasted(np.arange(8000), seed=1)
    assert logos.shape == (8000, MOST_LOGOS)
    counts = np.bincount((logos != NONE).sum(axis=1)) / 8000
    np.testing.assert_allclose(counts, 1 / (MOST_LOGOS + 1), atol=0.02)
    named = [row[row != NONE] for row in logos]
    assert all(len(set(row)) == len(row) for row in named)
    shares = np.bincount(np.concatenate(named), minlength=LOGOS) / sum(map(len, named))
    np.testing.assert_allclose(shares, 1 / LOGOS, atol=0.01)


def test_a_frame_is_a_function_of_its_number_and_the_seed() -> None:
    image = frame(7, seed=1)
    assert image.shape == (HEIGHT, WIDTH)
    assert image.dtype == np.uint8
    np.testing.assert_array_equal(image, frame(7, seed=1))
    assert (image != frame(8, seed=1)).mean() > 0.9
    assert (image != frame(7, seed=2)).mean() > 0.9


def test_the_logos_are_16_different_images() -> None:
    images = logo_images()
    assert len(images) == LOGOS
    assert {image.shape for image in images} == {(SIDE, SIDE)}
    assert len({image.tobytes() for image in images}) == LOGOS
