"""The offsets that a micro-batch of a pipeline ended at, from the checkpoint.

Spark writes them before the batch begins, so they are there for every batch that has a state.
"""

import json

from tidegate.errors import TidegateError
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.state.files import Durable
from tidegate.spark.state.location import location_of


def batch_offsets(checkpoint: str, batch_id: int, topic: str, segment: str = "main") -> str:
    """Offsets of a topic as JSON, in the form of Kafka's `endingOffsets`: {"topic": {"0": 12}}."""
    place = Checkpoint(Durable(location_of(checkpoint))).segment(segment).below("spark")
    text = place.read(f"offsets/{batch_id}").decode()
    for line in text.splitlines():
        if line.startswith("{") and topic in json.loads(line):
            return line
    raise TidegateError(
        f"batch {batch_id} of segment '{segment}' in {checkpoint} has no offsets of topic '{topic}'"
    )
