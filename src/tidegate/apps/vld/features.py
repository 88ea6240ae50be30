"""SIFT features of an image, by OpenCV: the heavy work of the extractor (DRS V-A.1).

A descriptor has 128 whole numbers of at most 255, so a byte each is exact. Their products and sums
are below 2^24, so distances are exact in 32-bit floats too, in whatever order they are added up.
"""

from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from tidegate.apps.vld.logos import Image, logo_images

Descriptors = npt.NDArray[np.uint8]
"""One row of 128 numbers per feature."""

LENGTH = 128
MOST_FEATURES = 400
"""Of a frame with more, the ones with the strongest contrast are kept."""


def extract(image: Image) -> Descriptors:
    """The features of an image."""
    _, found = _sift().detectAndCompute(image, None)
    if found is None:
        return np.empty((0, LENGTH), dtype=np.uint8)
    return np.asarray(found, dtype=np.float32).astype(np.uint8)


@lru_cache(maxsize=1)
def logo_features() -> tuple[Descriptors, ...]:
    """The features of each logo, computed once per process."""
    return tuple(extract(image) for image in logo_images())


@lru_cache(maxsize=1)
def _sift() -> Any:
    """The detector. Tasks run side by side, so each has one thread; that also fixes the order."""
    cv2.setNumThreads(1)
    return cv2.SIFT_create(nfeatures=MOST_FEATURES)
