"""Formats of sinks are looked up in Spark before anything runs."""

import pytest

import tidegate as tg
from tidegate.errors import AskedWrongly
from tidegate.spark.batch.channel import FORMAT, ChannelSource
from tidegate.spark.sink_formats import check_sinks

pytestmark = pytest.mark.spark


def graph(spark, *sink, **options):
    return tg.pipeline("p", spark.readStream.format("rate").load()).to(*sink, **options).graph


@pytest.mark.parametrize(
    ("sink", "options", "said"),
    [
        ("parkay", {}, "sink 'parkay': Spark has no format 'parkay'; known: "),
        ("kafka", {}, r"sink 'kafka': Spark has no format 'kafka'.*add the package"),
        ("parquet", {}, r"sink 'parquet': .* needs a path, as in .to\('parquet', path='...'\)"),
        ("xml", {}, "sink 'xml': the format 'xml' writes files and needs a path"),
        ("csv", {"path": "s3a://KEY:SECRET@bucket/x"}, r"sink 'csv': the path s3a://\*\*\*@bucket"),
    ],
)
def test_a_wrong_format_is_refused_by_start_and_leaves_nothing(
    spark, tmp_path, sink, options, said
):
    flow = tg.pipeline("p", spark.readStream.format("rate").load()).to(sink, **options)
    with pytest.raises(AskedWrongly, match=said) as refused:
        flow.start(str(tmp_path / "ck"))
    assert "SECRET" not in str(refused.value)
    assert not (tmp_path / "ck").exists()


def test_formats_that_spark_knows_pass(spark, tmp_path):
    spark.dataSource.register(ChannelSource)
    check_sinks(graph(spark, "parquet", path=str(tmp_path)), spark)
    for name in ("noop", "console", "jdbc", FORMAT):
        check_sinks(graph(spark, name), spark)
    check_sinks(graph(spark, lambda frame, batch_id: None), spark)
