"""Prepares a Spark session that Tidegate did not build, so that its workers can import Tidegate.

`tidegate.session()` sets interpreter and module path before Spark starts. In a session that already
runs, the interpreter and the environment of its Python workers can still be changed, because Spark
sends them along with each function; and a zip file of the package can be sent to the executors.
What cannot be changed is which packages the interpreters of other machines have.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession

import tidegate
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.master import on_this_machine
from tidegate.spark.session import import_roots

_DAEMON = "spark.python.daemon.module"
_prepared: set[str] = set()
_proved: set[str] = set()


def prepare(session: SparkSession) -> None:
    """Give the workers of a foreign session this interpreter and this module path, where possible.

    On one machine both are set, unless the user chose an interpreter. On several, paths of this
    machine mean nothing.
    """
    if type(session).__module__.startswith("pyspark.sql.connect"):
        raise AskedWrongly(
            "this is a Spark Connect session, whose driver is another process; Tidegate runs "
            "inside the driver, so give a session such as tidegate.session()"
        )
    context = session.sparkContext
    application = str(context.applicationId)
    if _is_ours(session) or application in _prepared:
        return
    _prepared.add(application)
    if not on_this_machine(str(context.master)):
        return
    given = context.environment.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    roots = [*import_roots(), *filter(None, given.split(os.pathsep))]
    context.environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(roots))
    use_this_interpreter(session)


def use_this_interpreter(session: SparkSession) -> None:
    """Let the Python workers on this machine be this interpreter, unless the user chose one.

    Spark takes the first `python3` of the path, which is another one if the driver's is that of a
    virtual environment that was not activated.
    """
    context = session.sparkContext
    chosen = context.getConf().get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
    if not chosen and on_this_machine(str(context.master)):
        context.pythonExec = sys.executable


def require_workers(session: SparkSession) -> None:
    """Prove by a small job that the workers of a foreign session can run Tidegate's tasks.

    If they lack the package alone, it is sent to them.
    """
    prepare(session)
    context = session.sparkContext
    application = str(context.applicationId)
    if _is_ours(session) or application in _proved:
        return
    lacks = _what_workers_lack(session)
    if lacks == "tidegate":
        context.addPyFile(_zipped())
        lacks = _what_workers_lack(session)
    if lacks:
        raise TidegateError(
            f"the Python workers of this Spark session cannot import {lacks} with the interpreter "
            f"'{context.pythonExec}'; install tidegate there on every machine, or build the "
            "session with tidegate.session(), or set spark.pyspark.python to one that has it"
        )
    _proved.add(application)


def _is_ours(session: SparkSession) -> bool:
    return str(session.sparkContext.getConf().get(_DAEMON, "")).startswith("tidegate.")


def _what_workers_lack(session: SparkSession) -> str:
    """The module that a worker cannot import; empty if it can import all that tasks need."""
    here = sys.modules[__name__]
    # The workers cannot import this module yet, so its functions go to them by value.
    cloudpickle.register_pickle_by_value(here)  # type: ignore[no-untyped-call]
    try:
        rows = session.range(0, 1, 1, 1).mapInArrow(_tell, "lacks string").collect()
    except Exception as error:
        text = str(error)
        found = text.partition("No module named ")[2].split("'")
        if len(found) > 1:
            return found[1]
        raise TidegateError(
            "the Python workers of this Spark session do not run: "
            f"{next((line for line in text.splitlines() if line.strip()), type(error).__name__)}"
        ) from error
    finally:
        cloudpickle.unregister_pickle_by_value(here)  # type: ignore[no-untyped-call]
    return str(rows[0][0])


def _tell(blocks: Iterator[Any]) -> Iterator[Any]:
    """In a worker: the first module that it cannot import. It imports nothing of ours itself."""
    from importlib import import_module

    import pyarrow

    lacks = ""
    for name in ("numpy", "pandas", "tidegate", "tidegate.spark.batch.keyed_task"):
        try:
            import_module(name)
        except ImportError as error:
            lacks = error.name or name
            break
    for _ in blocks:
        yield pyarrow.RecordBatch.from_pydict({"lacks": [lacks]})


def _zipped() -> str:
    """A zip file of this package, for workers that have everything else."""
    root = Path(tidegate.__file__).resolve().parent
    target = Path(tempfile.mkdtemp(prefix="tidegate-package-")) / "tidegate"
    return shutil.make_archive(str(target), "zip", root.parent, root.name)
