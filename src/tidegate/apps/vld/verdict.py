"""Whether the detections of a run are those of the reference, and how good they are.

A frame's answer depends on that frame alone, so it is the same however micro-batches cut the
stream, and in whatever order frames are processed.
"""

import numpy as np
import pyarrow as pa

from tidegate.apps.application import Verdict
from tidegate.apps.vld.frames import NONE, pasted
from tidegate.apps.vld.reference import Detections, detections

BOUND = 0.9
"""The least precision and recall against the logos that were really pasted."""


def emitted(rows: pa.Table | None) -> Detections:
    """What a sink has collected, with how often it is there."""
    if rows is None:
        return Detections()
    return Detections(zip(rows["frame"].to_pylist(), rows["logo"].to_pylist(), strict=True))


def judged(found: Detections, arrived: int, seed: int) -> Verdict:
    """Compare with the reference over all frames that arrived, and with the pasted logos."""
    expected = expected_rows(arrived, seed)
    missing, surplus = expected - found, found - expected
    truth = {
        (number, int(logo))
        for number, logos in enumerate(pasted(np.arange(arrived), seed))
        for logo in logos[logos != NONE]
    }
    seen = {one for one in found if one[1] != NONE}
    right = len(seen & truth)
    precision = right / len(seen) if seen else 1.0
    recall = right / len(truth) if truth else 1.0
    equal = not missing and not surplus
    same = (
        "equal those of a reference that goes frame by frame"
        if equal
        else f"differ from the reference ({missing.total()} missing, {surplus.total()} too many)"
    )
    return Verdict(
        correct=equal and precision >= BOUND and recall >= BOUND,
        said=(
            f"{len(seen)} logos in {arrived} frames {same}; precision {precision:.3f} and recall"
            f" {recall:.3f} against the pasted logos (at least {BOUND:g} is asked for)"
        ),
        figures={
            "frames": float(arrived),
            "detections": float(len(seen)),
            "precision": precision,
            "recall": recall,
        },
    )


def expected_rows(arrived: int, seed: int) -> Detections:
    """The rows that the sink must have: the reference's, and one for each frame without a logo."""
    expected = detections(range(arrived), seed)
    some = {number for number, _ in expected}
    expected.update((number, NONE) for number in range(arrived) if number not in some)
    return expected
