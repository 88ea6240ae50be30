"""Durable files: whole or not at all, and the URLs of directories."""

import pytest

from tidegate.errors import TidegateError
from tidegate.spark.state.files import Durable


@pytest.mark.parametrize(
    "url, below",
    [
        ("s3://bucket/ck?region=eu-west-1", "s3://bucket/ck/state/op?region=eu-west-1"),
        ("hdfs://host:9000/ck/", "hdfs://host:9000/ck/state/op"),
        ("/data/ck", "/data/ck/state/op"),
    ],
)
def test_a_directory_below_a_url_keeps_its_options(url, below):
    assert Durable(url).below("state").below("op").url == below


def test_a_file_appears_whole_and_nothing_else_does(tmp_path):
    place = Durable(str(tmp_path))
    place.write("a.json", b"{}")
    place.write_json("b.json", {"x": 1})
    assert place.names() == ["a.json", "b.json"]
    assert place.read_json("b.json") == {"x": 1}
    place.write("a.json", b"not json")
    with pytest.raises(TidegateError, match=r"a\.json is not readable JSON; nothing was changed"):
        place.read_json("a.json")
    with pytest.raises(TidegateError, match=r"c\.json is missing"):
        place.read("c.json")
