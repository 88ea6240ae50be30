"""What is refused before anything runs: one sentence each, and nothing is left behind."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from tidegate.errors import AskedWrongly
from tidegate.pipelines.stream import pipeline
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.checks import check_name, check_place, check_start
from tidegate.spark.options import StartOptions, filled
from tidegate.spark.start import start
from tidegate.spark.state.files import Durable
from tidegate.spark.state.location import location_of, masked
from tidegate.spark.state.read import read_state


class Frame:
    """All that a pipeline asks of a DataFrame before it is started."""

    isStreaming = True  # noqa: N815 (Spark's name)
    schema = StructType([StructField("k", LongType())])


def flow(name="p"):
    return pipeline(name, Frame()).to(lambda frame, batch_id: None)


def session(master="local[2]", queries=()):
    return SimpleNamespace(
        sparkContext=SimpleNamespace(master=master),
        streams=SimpleNamespace(active=[SimpleNamespace(name=name) for name in queries]),
    )


SECRETS = [
    ("s3://AKIA:s3cr3t@bucket/ck", "s3://***@bucket/ck"),
    ("s3://AKIA:s3/cr3t@bucket/ck?region=eu", "s3://***@bucket/ck?region=eu"),
    ("abfss://:s3cr3t==@account/ck", "abfss://***@account/ck"),
    ("s3://bucket/ck?secret_key=s3cr3t&region=eu", "s3://bucket/ck?secret_key=***&region=eu"),
]


@pytest.mark.parametrize(("url", "shown"), SECRETS)
def test_a_url_with_credentials_is_refused_without_showing_them(url, shown):
    for act in (lambda: location_of(url), lambda: read_state(url, "op")):
        with pytest.raises(AskedWrongly, match="has credentials in its URL") as refused:
            act()
        assert shown in str(refused.value)
        assert "cr3t" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    ["hdfs://user@host:9000/data/a@b:c", "hdfs://host:9000", "gs://bucket/a:b@c", "abfs://c@a/x"],
)
def test_a_url_without_credentials_stays_as_it_is(url):
    assert masked(url) == url == location_of(url)


@pytest.mark.parametrize("wrong", ["", None, 3, ["a"]])
def test_a_checkpoint_is_text_or_a_path(wrong):
    with pytest.raises(AskedWrongly, match="give a directory or a URL"):
        start(flow().graph, wrong)


def test_a_path_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert location_of("ck") == location_of(Path("ck")) == str(tmp_path / "ck")


@pytest.mark.parametrize("master", ["spark://head:7077", "yarn", "k8s://https://host", "x"])
def test_a_local_checkpoint_is_refused_where_tasks_run_on_other_machines(tmp_path, master):
    root = Durable(str(tmp_path / "ck"))
    with pytest.raises(AskedWrongly, match=r"this machine's disk.*shared_checkpoint=True"):
        check_place(root, master, shared=False)
    check_place(root, master, shared=True)


@pytest.mark.parametrize(
    "master", ["local[*]", "local-cluster[2,1,1024]", "spark://127.0.0.1:7077"]
)
def test_a_local_checkpoint_is_taken_where_all_is_on_this_machine(tmp_path, master):
    check_place(Durable(str(tmp_path / "ck")), master, shared=False)


def test_spark_gets_the_scheme_so_that_its_default_filesystem_does_not_matter(tmp_path):
    place = Durable(str(tmp_path)).below("spark")
    assert place.location == f"file://{tmp_path}/spark/"
    assert Durable("hdfs://host/x?user=me").url == "hdfs://host/x?user=me"


def test_a_file_is_no_checkpoint(tmp_path):
    (tmp_path / "ck").write_text("")
    with pytest.raises(AskedWrongly, match="is a file; give a directory"):
        check_place(Durable(str(tmp_path / "ck")), "local[1]", shared=False)


@pytest.mark.parametrize("name", ["offsets", "commits"])
def test_the_checkpoint_of_a_plain_query_is_refused(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(AskedWrongly, match="is the checkpoint of a Spark query"):
        check_place(Durable(str(tmp_path)), "local[1]", shared=False)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_name_of_a_running_pipeline_is_refused():
    graph = flow().graph
    check_name(graph, {"p.other", None, "q.main"})
    with pytest.raises(AskedWrongly, match="a pipeline 'p' already runs in this Spark session"):
        check_name(graph, {"p.main"})


def test_a_declaration_without_effect_is_said(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("tidegate.spark.checks.require_workers", lambda session: None)
    given = filled(StartOptions, {"dropped": ["op"]})
    check_start(flow().graph, session(), str(tmp_path / "ck"), given)
    assert "the checkpoint fits without 'op' in dropped= or same_state=; remove it" in caplog.text


@pytest.mark.parametrize(
    ("declared", "running"),
    [({"renamed": {"a": "b"}}, ()), ({}, ("p.main",))],
)
def test_a_refused_start_leaves_nothing_behind(tmp_path, declared, running):
    given = filled(StartOptions, declared)
    place = tmp_path / "ck"
    graph = flow().graph
    if declared:
        Checkpoint(Durable(str(place))).open(graph)
        before = (place / "pipeline.json").read_bytes()
    with pytest.raises(AskedWrongly):
        check_start(graph, session(queries=running), str(place), given)
    if declared:
        assert (place / "pipeline.json").read_bytes() == before
        assert json.loads(before)["pipeline"] == "p"
    else:
        assert not place.exists()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"target": 2}, "target=2: expected text or None. The latency to keep, such as '2 sec"),
        ({"tasks": "2"}, "tasks='2': expected a whole number or None"),
        ({"tasks": True}, "tasks=True: expected a whole number"),
        ({"cores": "4"}, "cores='4': expected a whole number or two of them"),
        ({"dry_run": "no"}, "dry_run='no': expected True or False"),
        ({"dropped": 3}, "dropped=3: expected a list"),
        ({"trigger": 5}, "trigger=5: expected text"),
    ],
)
def test_an_option_of_the_wrong_type_is_told(tmp_path, wrong, said):
    with pytest.raises(AskedWrongly, match=said):
        start(flow().graph, str(tmp_path / "ck"), **wrong)
    assert not (tmp_path / "ck").exists()


class NotAStream(Frame):
    isStreaming = False  # noqa: N815 (Spark's name)


Remote = type("DataFrame", (Frame,), {"__module__": "pyspark.sql.connect.dataframe"})


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        ([1, 2], "expected a streaming DataFrame, not a list"),
        (None, "expected a streaming DataFrame, not a NoneType"),
        (NotAStream(), "is not a stream"),
        (Remote(), "is from Spark Connect"),
    ],
)
def test_a_source_is_a_streaming_frame_of_this_process(frame, said):
    with pytest.raises(AskedWrongly, match=f"pipeline 'p': .*{said}"):
        pipeline("p", frame)
    with pytest.raises(AskedWrongly, match=f"source 'more': .*{said}"):
        pipeline("p", Frame()).source(frame, name="more")
