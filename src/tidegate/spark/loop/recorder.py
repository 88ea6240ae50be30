"""Chooses how the records of a run are written: appended to a file, or in parts."""

from tidegate.recording import Recorder, RecordParts, RecordWriter
from tidegate.spark.state.files import Durable


def recorder(place: Durable) -> Recorder:
    """What writes records to this directory. Only local files can be appended to."""
    return RecordWriter(place.path("")) if place.local else RecordParts(place)
