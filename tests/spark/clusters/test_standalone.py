"""A standalone cluster on several hosts: one is killed, one is cut off, and no row is lost."""

from pathlib import Path

import pytest

from tests.helpers.on_cluster import run_on
from tidegate.spark.clusters.hosts import why_not
from tidegate.spark.jars.ivy import JarsUnavailable
from tidegate.spark.s3.connector import connector_jars

pytestmark = [
    pytest.mark.experiment,
    pytest.mark.skipif(why_not() is not None, reason=why_not() or ""),
]


def test_a_pipeline_survives_the_loss_of_a_host_and_of_a_network(tmp_path: Path) -> None:
    assert run_on("hosts", tmp_path)["cut_s"] >= 30.0


def test_with_its_checkpoint_on_s3_it_survives_the_loss_of_a_host(tmp_path: Path) -> None:
    pytest.importorskip("moto", reason="tests on S3 need the development packages")
    try:
        connector_jars()
    except JarsUnavailable as error:
        pytest.skip(str(error))
    # What the lost host had in its cache came from the store.
    assert run_on("s3", tmp_path)["fetched_bytes"] > 0
