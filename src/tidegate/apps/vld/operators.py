"""The operators of the topology (DRS fig. 4), as functions of Arrow tables. A frame is one row.

The paper's service times vary with the number of features (DRS V-A.1). When operators are
stretched, a frame's time is therefore proportional to its features.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.apps.stretching import Stretched, stretched_map
from tidegate.apps.vld.features import LENGTH, extract
from tidegate.apps.vld.frames import HEIGHT, NONE, WIDTH, frame
from tidegate.apps.vld.logos import LOGOS
from tidegate.apps.vld.matching import MATCHES, matching_logos
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.identity import Identity
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, KeyedFunction, Update

Operator = Callable[[pa.Table], pa.Table | Derived]

FRAMES = "frame long, image binary"
FEATURES = "frame long, features binary"
PAIRS = "frame long, logos array<int>"

MEAN_FEATURES = 171.0
"""Features of a frame, on average over many: the weight of a frame is its features over these."""


def frames(seed: int) -> Operator:
    """The spout: row number n becomes frame number n."""

    def spout(rows: pa.Table) -> pa.Table:
        numbers = rows["seq"].to_pylist()
        images = [frame(number, seed).tobytes() for number in numbers]
        return pa.table({"frame": rows["seq"], "image": pa.array(images, pa.binary())})

    return spout


def extractor(row_s: float | None) -> Operator:
    """The SIFT features of each frame, 128 bytes each. What they weigh is known afterwards."""
    return stretched_map(_extracted, row_s, weights, of_made=True)


def matcher(row_s: float | None) -> Operator:
    """The matching pairs of each frame: for each pair, its logo."""
    return stretched_map(_matched, row_s, weights)


def aggregator(row_s: float | None) -> KeyedFunction:
    """The logos in each frame."""
    return Stretched(LogoCount(), row_s)


def weights(rows: pa.Table) -> npt.NDArray[np.float64]:
    """For each frame its features over the mean."""
    sizes = pc.binary_length(rows["features"]).to_numpy()
    return np.asarray(sizes / (LENGTH * MEAN_FEATURES), dtype=np.float64)


def _extracted(rows: pa.Table) -> pa.Table:
    images = (_numbers(image).reshape(HEIGHT, WIDTH) for image in rows["image"])
    found = [extract(image).tobytes() for image in images]
    return pa.table({"frame": rows["frame"], "features": pa.array(found, pa.binary())})


def _matched(rows: pa.Table) -> pa.Table:
    found = (_numbers(features).reshape(-1, LENGTH) for features in rows["features"])
    logos = [matching_logos(features) for features in found]
    return pa.table({"frame": rows["frame"], "logos": pa.array(logos, pa.list_(pa.int32()))})


def _numbers(cell: pa.Scalar) -> npt.NDArray[np.uint8]:
    """The bytes of a cell, not copied."""
    return np.frombuffer(cell.as_buffer(), dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class LogoCount:
    """Emits (frame, logo) for each logo that enough features match, or (frame, -1) for none.

    All pairs of a frame come in one row, so a frame is judged in the batch that brings it, and
    nothing of it needs to be kept: the state is always empty. Every frame is emitted, so that the
    verifier notices if one is missing.
    """

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """The key is the frame's number."""
        (name,) = key
        number = rows.field(name)
        return BoundKeyed(
            update=_aggregated,
            state=pa.schema([("matches", pa.int32())]),
            output=pa.schema([number, pa.field("logo", pa.int32())]),
            identity=self.identity(),
        )

    def identity(self) -> Identity:
        """What its answers depend on."""
        return {"function": "logo_count", "matches": MATCHES}


def _aggregated(batch: KeyedBatch) -> Update:
    logos = batch.rows["logos"].combine_chunks()
    parents = pc.list_parent_indices(logos).to_numpy()
    places = batch.row_key[parents] * LOGOS + pc.list_flatten(logos).to_numpy()
    matches = np.bincount(places, minlength=batch.keys.num_rows * LOGOS).reshape(-1, LOGOS)
    key, logo = np.nonzero(matches > MATCHES)
    without = np.setdiff1d(np.arange(batch.keys.num_rows), key)
    key = np.concatenate([key, without])
    logo = np.concatenate([logo, np.full(len(without), NONE)]).astype(np.int32)
    named = batch.keys.take(pa.array(key))
    return Update(output=named.append_column("logo", pa.array(logo)))
