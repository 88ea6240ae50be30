"""Generates the frames of a video: textures with logos pasted into them, scaled, turned and noisy.

A frame is a pure function of its number and the seed, and so are the logos in it, which the
verifier knows without looking at the frame. Some frames are busy and some are plain, so the number
of their features varies, "causing significant variance on the computation overhead" (DRS V-A.1).
"""

import cv2
import numpy as np
import numpy.typing as npt

from tidegate.apps.vld.logos import LOGOS, SIDE, Image, badge, logo_images
from tidegate.workload.counter import uniforms, words

WIDTH, HEIGHT = 240, 180
MOST_LOGOS = 3
"""A frame has 0 to 3 logos, all equally likely."""
NONE = -1
SMALLEST, LARGEST = 0.5, 1.2
"""How much a logo is scaled."""
NOISE = 14.0
"""Standard deviation of the noise on every pixel, in shades of 256."""
_CELL = 80
_ACROSS, _DOWN = WIDTH // _CELL, HEIGHT // _CELL
"""Logos are pasted into different cells, so they do not cover each other."""
_COARSE, _FINE = 24, 6
"""Pixels between the random values of the two layers of a texture."""
_PER_FRAME = 64
_TEXTURE, _SPECKS, _PIXELS, _CHOICES, _WHICH = range(5)
"""Streams of random numbers, one for each purpose."""


def pasted(numbers: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.int64]:
    """For each frame the logos in it: three columns, with `NONE` where there are fewer."""
    ranks = np.argsort(_draws(numbers, seed, _WHICH, LOGOS), axis=1)[:, :MOST_LOGOS]
    count = (_draws(numbers, seed, _CHOICES, 1) * (MOST_LOGOS + 1)).astype(np.int64)
    return np.where(np.arange(MOST_LOGOS) < count, ranks, NONE)


def frame(number: int, seed: int) -> Image:
    """One frame, grey."""
    draws = _draws(np.array([number]), seed, _CHOICES, _PER_FRAME)[0]
    image = _texture(number, seed, busy=float(draws[1]))
    cells = np.argsort(draws[2 : 2 + _ACROSS * _DOWN])
    places = draws[16:].reshape(-1, 4)
    which = pasted(np.array([number]), seed)[0]
    for logo, cell, place in zip(which[which != NONE], cells, places, strict=False):
        _paste(image, int(logo), int(cell), place)
    # The sum of two uniform numbers is triangular, which is noise enough and cheap.
    bits = words(number * WIDTH * HEIGHT + np.arange(WIDTH * HEIGHT, dtype=np.int64), seed, _PIXELS)
    halves = bits.view(np.uint32).reshape(-1, 2).astype(np.float32) * np.float32(2.0**-32)
    image += (halves.sum(axis=1) - 1.0).reshape(HEIGHT, WIDTH) * np.float32(NOISE * np.sqrt(6.0))
    return np.clip(np.rint(image), 0, 255).astype(np.uint8)


def _texture(number: int, seed: int, busy: float) -> npt.NDArray[np.float32]:
    """Soft shades, and specks on them: the busier the frame, the more."""
    shades = 128.0 + 60.0 * (_grid(number, seed, _TEXTURE, _COARSE) - 0.5)
    specks = _grid(number, seed, _SPECKS, _FINE)
    share = 0.002 + 0.3 * busy**6
    heights = np.where(specks < share, 110.0 * (2.0 * specks / share - 1.0), 0.0)
    return _spread(shades) + _spread(heights)


def _paste(
    image: npt.NDArray[np.float32], logo: int, cell: int, place: npt.NDArray[np.float64]
) -> None:
    """Paste a logo into a cell, scaled, turned and moved within the cell."""
    scale = SMALLEST + (LARGEST - SMALLEST) * place[0]
    left, top = _CELL * (cell % _ACROSS), (HEIGHT // _DOWN) * (cell // _ACROSS)
    free = (_CELL - SIDE * scale, HEIGHT // _DOWN - SIDE * scale)
    matrix = cv2.getRotationMatrix2D((SIDE / 2, SIDE / 2), 360.0 * place[1], scale)
    matrix[:, 2] += SIDE * (scale - 1.0) / 2 + np.array(free) * place[2:4]
    size = (_CELL, HEIGHT // _DOWN)
    cover = cv2.warpAffine(badge(), matrix, size).astype(np.float32) / 255.0
    shown = cv2.warpAffine(logo_images()[logo], matrix, size).astype(np.float32)
    under = image[top : top + size[1], left : left + size[0]]
    under += cover * (shown - under)


def _grid(number: int, seed: int, stream: int, spacing: int) -> npt.NDArray[np.float64]:
    """Random values in [0, 1) on a grid with so many pixels between its points."""
    shape = (HEIGHT // spacing + 2, WIDTH // spacing + 2)
    count = shape[0] * shape[1]
    numbers = number * count + np.arange(count, dtype=np.int64)
    return uniforms(words(numbers, seed, stream)).reshape(shape)


def _spread(grid: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """The values of a grid, interpolated to all pixels of a frame."""
    wide = cv2.resize(grid.astype(np.float32), (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
    return np.asarray(wide, dtype=np.float32)


def _draws(
    numbers: npt.NDArray[np.int64], seed: int, stream: int, count: int
) -> npt.NDArray[np.float64]:
    """The first random numbers of each frame, one row per frame."""
    places = numbers[:, None] * _PER_FRAME + np.arange(count)
    return uniforms(words(places.ravel(), seed, stream)).reshape(len(numbers), count)
