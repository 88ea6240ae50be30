"""A session of the user's own: what is set on it, and what is said when that is not enough."""

import itertools
import os
import sys
import zipfile
from types import SimpleNamespace

import pytest

from tests.helpers.places import SOURCE
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark import foreign_session
from tidegate.spark.foreign_session import prepare, require_workers

NUMBERS = itertools.count()


class Session:
    """A session with workers that lack something, until something is sent to them."""

    def __init__(self, master="local[2]", lacks=(), **conf):
        self.lacks = list(lacks)
        self.sent = []
        self.sparkContext = SimpleNamespace(
            master=master,
            applicationId=f"app-{next(NUMBERS)}",
            environment={},
            pythonExec="python3",
            getConf=lambda: conf,
            addPyFile=self.sent.append,
        )
        self.jobs = 0

    def range(self, *_):
        return self

    def mapInArrow(self, function, schema):  # noqa: N802 (Spark's name)
        self.jobs += 1
        return self

    def collect(self):
        return [(self.lacks.pop(0) if self.lacks else "",)]


@pytest.fixture(autouse=True)
def no_choice(monkeypatch):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)


def test_workers_on_this_machine_get_interpreter_and_path(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/given")
    session = Session()
    prepare(session)
    context = session.sparkContext
    assert context.pythonExec == sys.executable
    path = context.environment["PYTHONPATH"].split(os.pathsep)
    assert path[0] == str(SOURCE)
    assert "/given" in path


def test_an_interpreter_that_was_chosen_stays(monkeypatch):
    session = Session(**{"spark.pyspark.python": "/opt/python"})
    prepare(session)
    assert session.sparkContext.pythonExec == "python3"
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    session = Session()
    prepare(session)
    assert session.sparkContext.pythonExec == "python3"


@pytest.mark.parametrize(
    ("master", "conf"),
    [("yarn", {}), ("local[2]", {"spark.python.daemon.module": "tidegate.spark.python_daemon"})],
)
def test_other_machines_and_our_own_sessions_are_left_alone(master, conf):
    session = Session(master, **conf)
    prepare(session)
    assert (session.sparkContext.pythonExec, session.sparkContext.environment) == ("python3", {})


def test_the_package_is_sent_where_it_alone_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(foreign_session.tempfile, "mkdtemp", lambda prefix: str(tmp_path))
    session = Session("yarn", lacks=["tidegate"])
    require_workers(session)
    (sent,) = session.sent
    assert "tidegate/spark/batch/keyed_task.py" in zipfile.ZipFile(sent).namelist()
    assert session.jobs == 2
    require_workers(session)
    assert session.jobs == 2, "an application is asked once"


def test_what_cannot_be_sent_is_named():
    session = Session("yarn", lacks=["pyarrow"])
    with pytest.raises(TidegateError, match="cannot import pyarrow with the interpreter 'python3'"):
        require_workers(session)


def test_a_session_of_spark_connect_is_refused():
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
    with pytest.raises(AskedWrongly, match="this is a Spark Connect session"):
        prepare(remote())
