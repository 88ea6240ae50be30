"""The job that asks workers what they can import, on real workers."""

import pytest
from pyspark.sql import SparkSession

from tidegate.spark import foreign_session
from tidegate.spark.foreign_session import require_workers


def test_workers_are_asked_by_a_function_that_needs_nothing_of_ours(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = spark.sparkContext
    monkeypatch.setattr(context, "environment", dict(context.environment))
    monkeypatch.setattr(context, "pythonExec", context.pythonExec)
    monkeypatch.setattr(foreign_session, "_is_ours", lambda session: False)
    require_workers(spark)
    assert context.applicationId in foreign_session._proved
    monkeypatch.setattr(foreign_session, "_proved", set())
    monkeypatch.setattr(foreign_session, "_tell", _lacks_something)
    with pytest.raises(foreign_session.TidegateError, match="cannot import something_else with"):
        require_workers(spark)


def _lacks_something(blocks):
    import something_else  # noqa: F401

    yield from blocks
