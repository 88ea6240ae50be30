"""Keys with a collation are refused: equal strings would hash apart."""

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

import tidegate as tg
from tidegate.errors import AskedWrongly
from tidegate.pipelines.graph import Graph, Source
from tidegate.pipelines.schema import arrow_schema, struct_of
from tidegate.pipelines.stream import Stream

COLLATED = StructType(
    [
        StructField("name", StringType("UTF8_LCASE")),
        StructField("plain", StringType()),
        StructField("n", LongType()),
    ]
)


def stream() -> Stream:
    graph = Graph("p")
    graph.add(Source(name="source", inputs=(), schema=arrow_schema(COLLATED), frame=None))
    return Stream(graph, "source")


@pytest.mark.parametrize("key", ["name", ["plain", "name"]])
def test_a_key_with_a_collation_is_refused_with_what_to_do(key):
    with pytest.raises(
        AskedWrongly,
        match=r"operator 'c': the key column 'name' has the collation UTF8_LCASE; expected .*"
        r"lower\(collate\(name, 'UTF8_BINARY'\)\)",
    ):
        stream().keyed("c", tg.count(), key=key)


def test_a_class_column_with_a_collation_is_refused():
    with pytest.raises(AskedWrongly, match="the class column 'name' has the collation UTF8_LCASE"):
        stream().shed(by="name", classes={"gold": tg.ShedClass(floor=0.9)})


def test_other_columns_may_have_one_and_types_stay_as_they_are():
    stream().keyed("c", tg.latest("name", by="n"), key="plain")
    found = arrow_schema(COLLATED)
    assert found.types == [pa.string(), pa.string(), pa.int64()]
    assert [field.name for field in struct_of(found)] == ["name", "plain", "n"]
