"""The 16 logos to look for, drawn from random numbers: shapes in shades of grey on a round badge.

The paper selected 16 logos as detection targets (DRS V-B) and does not publish them. These are the
same in every run, whatever the seed of the frames.
"""

from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from tidegate.workload.counter import uniforms, words

Image = npt.NDArray[np.uint8]
"""Shades of grey, row by row."""

LOGOS = 16
SIDE = 64
"""A logo's width and height in pixels, before it is scaled."""
_ROWS = 5
"""Shapes in each row and column of a logo; each is moved a little out of line."""
_BORDER = 4
_DARK, _MIDDLE, _LIGHT = 30, 128, 225
_SOFT = 0.8
"""Standard deviation in pixels of the blur that makes edges soft, as a camera does."""
_SEED = 2017


@lru_cache(maxsize=1)
def logo_images() -> tuple[Image, ...]:
    """All logos; the corners outside of their badge are not pasted."""
    return tuple(_draw(number) for number in range(LOGOS))


@lru_cache(maxsize=1)
def badge() -> Image:
    """255 where a logo is, 0 in the corners around it."""
    mask = np.zeros((SIDE, SIDE), dtype=np.uint8)
    cv2.circle(mask, (SIDE // 2, SIDE // 2), SIDE // 2 - 1, (255,), -1)
    return mask


def _draw(number: int) -> Image:
    """A dark or light badge with shapes of random kinds, sizes, angles and shades on it."""
    shapes = np.arange(_ROWS * _ROWS * 7, dtype=np.int64)
    drawn = uniforms(words(shapes, _SEED, stream=number)).reshape(_ROWS * _ROWS, 7)
    image = np.full((SIDE, SIDE), _LIGHT if number % 2 else _DARK, dtype=np.uint8)
    pitch = (SIDE - 2 * _BORDER) / _ROWS
    places = np.stack(np.divmod(np.arange(_ROWS * _ROWS), _ROWS), axis=1)
    centres = _BORDER + pitch * (places + 0.1 + 0.8 * drawn[:, 1:3])
    sides = pitch * (0.4 + 0.9 * drawn[:, 3:5])
    for shape, (across, down), (width, height) in zip(drawn, centres, sides, strict=True):
        box = cv2.RotatedRect((across, down), (width, height), 180.0 * shape[5])
        grey = (int(256 * shape[6]),)
        if shape[0] < 0.4:
            cv2.fillPoly(image, [box.points().astype(np.int32)], grey)
        else:
            cv2.ellipse(image, box, grey, -1)
    image[badge() == 0] = _MIDDLE
    return np.asarray(cv2.GaussianBlur(image, (0, 0), _SOFT), dtype=np.uint8)
