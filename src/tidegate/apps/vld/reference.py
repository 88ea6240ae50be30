"""The logos in frames by a plain loop, frame by frame, to verify a pipeline with.

Frames and SIFT features are made by the same functions. Matching is done by OpenCV's brute-force
matcher, logo by logo, and pairs are counted in plain Python, so an error in the pipeline's matrices
or in its aggregation shows.
"""

from collections import Counter
from collections.abc import Iterable

import cv2
import numpy as np

from tidegate.apps.vld.features import Descriptors, extract, logo_features
from tidegate.apps.vld.frames import frame
from tidegate.apps.vld.matching import DISTANCE, MATCHES, RATIO

Detections = Counter[tuple[int, int]]
"""How often each (frame, logo) was emitted."""


def detections(numbers: Iterable[int], seed: int) -> Detections:
    """The logos in these frames, once each."""
    return Counter(
        (number, logo)
        for number in numbers
        for logo in logos_in(matches(extract(frame(number, seed))))
    )


def logos_in(matched: Iterable[int]) -> list[int]:
    """Logos that more features match than the threshold."""
    return sorted(logo for logo, count in Counter(matched).items() if count > MATCHES)


def matches(found: Descriptors) -> list[int]:
    """The logo of every matching pair, one feature at a time."""
    if not len(found):
        return []
    by_logo = [_squared_distances(found, logo) for logo in logo_features()]
    matched = []
    for distances in zip(*by_logo, strict=True):
        ranked = sorted((squared, logo) for logo, squared in enumerate(distances))
        (first, logo), (second, _) = ranked[:2]
        if first < DISTANCE**2 and first * RATIO[1] ** 2 < second * RATIO[0] ** 2:
            matched.append(logo)
    return matched


def _squared_distances(found: Descriptors, logo: Descriptors) -> list[int]:
    """For each feature of a frame the squared distance to the nearest feature of a logo."""
    matcher = cv2.BFMatcher(cv2.NORM_L2SQR)
    pairs = matcher.match(found.astype(np.float32), logo.astype(np.float32))
    nearest = {pair.queryIdx: round(pair.distance) for pair in pairs}
    return [nearest[place] for place in range(len(found))]
