"""What `Stream.start` takes is what the body takes, and mistakes are told before Spark is asked."""

import inspect

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from tidegate.errors import AskedWrongly
from tidegate.pipelines.stream import Stream, pipeline
from tidegate.spark.start import start


class Frame:
    """All that a pipeline asks of a DataFrame before it is started."""

    isStreaming = True  # noqa: N815 (Spark's name)
    schema = StructType([StructField("k", LongType())])

    @property
    def sparkSession(self):  # noqa: N802 (Spark's name)
        raise AssertionError("Spark was asked")


def options(function) -> dict[str, tuple]:
    parameters = inspect.signature(function).parameters.values()
    return {p.name: (p.annotation, p.default) for p in parameters if p.kind is p.KEYWORD_ONLY}


def test_a_stream_offers_the_options_of_the_body():
    body = options(start)
    body.pop("checkpoint")
    assert options(Stream.start) == body
    assert all(f"`{name}`" in Stream.start.__doc__ for name in body)


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"trigger": "soon"}, "^trigger: 'soon' is not a duration; write a positive number"),
        ({"trigger": "2 secnds"}, "unknown unit of time 'secnds'; did you mean 'seconds'"),
        ({"trigger": "0 seconds"}, "^trigger: '0 seconds' is not a positive duration"),
        ({"trigger": "10us"}, "^trigger: '10us' is shorter than a millisecond"),
        ({"tasks": 0}, "^tasks=0: give a whole number from 1"),
        ({"sample_every": 0}, "^sample_every=0: give a whole number from 1"),
    ],
)
def test_a_wrong_option_is_told_before_anything_starts(tmp_path, wrong, message):
    flow = pipeline("p", Frame()).to(lambda frame, batch_id: None)
    with pytest.raises(AskedWrongly, match=message):
        flow.start(str(tmp_path / "ck"), **wrong)
    assert not (tmp_path / "ck").exists()
