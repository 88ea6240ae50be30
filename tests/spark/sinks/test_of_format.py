"""Formats of sinks are looked up in Spark, and their options checked, before anything runs."""

import pytest

import tidegate as tg
from tidegate.errors import AskedWrongly
from tidegate.spark.batch.channel import FORMAT, ChannelSource
from tidegate.spark.sinks.files import SPARKS_LOG
from tidegate.spark.sinks.of_format import check_sinks

pytestmark = pytest.mark.spark


def graph(spark, *sink, **options):
    return tg.pipeline("p", spark.readStream.format("rate").load()).to(*sink, **options).graph


@pytest.mark.parametrize(
    ("sink", "options", "said"),
    [
        ("parkay", {}, "sink 'parkay': Spark has no format 'parkay'; known: "),
        ("delta", {"path": "x"}, "sink 'delta': Spark has no format 'delta'; give the session D"),
        ("parquet", {}, r"sink 'parquet': .* needs a path, as in .to\('parquet', path='...'\)"),
        ("xml", {}, "sink 'xml': the format 'xml' writes files and needs a path"),
        ("csv", {"path": "s3a://KEY:SECRET@bucket/x"}, r"sink 'csv': the path s3a://\*\*\*@bucket"),
        ("json", {"path": "x", "mode": "overwrite"}, "sink 'json': mode='overwrite' is not an opt"),
        (
            "orc",
            {"path": "x", "partition_by": "valu"},
            "partition_by: there is no column 'valu'; d",
        ),
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


def test_a_directory_of_sparks_own_sink_is_refused(spark, tmp_path):
    (tmp_path / "out" / SPARKS_LOG).mkdir(parents=True)
    with pytest.raises(AskedWrongly, match=r"written by Spark's own file sink.*another directory"):
        check_sinks(graph(spark, "parquet", path=str(tmp_path / "out")), spark)


def test_formats_that_spark_knows_pass(spark, tmp_path):
    spark.dataSource.register(ChannelSource)
    check_sinks(graph(spark, "parquet", path=str(tmp_path)), spark)
    for name in ("noop", "console", "jdbc", FORMAT):
        check_sinks(graph(spark, name), spark)
    check_sinks(graph(spark, lambda frame, batch_id: None), spark)
