"""Every example runs by itself, and its result is what it says."""

import importlib.util
from types import ModuleType

import pytest

from tests.helpers.places import EXAMPLES

pytestmark = pytest.mark.spark


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_running_count(spark):
    found = load("running_count").main(spark, seconds=3)
    assert found["rows"] == found["counted"] == 6000


def test_sessions(spark):
    found = load("sessions").main(spark, seconds=4)
    assert found["clicks"] == found["rows"] > 0
    assert found["closed"] > 0


def test_loop(spark):
    example = load("loop")
    found = example.main(spark, numbers=6)
    assert found == {start: example.expected_rounds(start) for start in range(1, 7)}


def test_ad_views(spark, tmp_path):
    load("ad_views").main(spark, seconds=2, sample=str(tmp_path / "ad_views.parquet"))
    assert spark.read.parquet(str(tmp_path / "ad_views.parquet")).count() == 4000
