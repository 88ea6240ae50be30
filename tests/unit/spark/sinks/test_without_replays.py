"""What the reader of a topic needs is checked before Spark sees it."""

from types import SimpleNamespace

import pytest

from tidegate.errors import AskedWrongly
from tidegate.spark.sinks.without_replays import without_replays


def test_a_frame_without_headers_is_refused():
    frame = SimpleNamespace(columns=["key", "value", "topic", "partition", "offset"])
    with pytest.raises(AskedWrongly, match=r"no column headers; .*'includeHeaders', 'true'"):
        without_replays(frame)
