"""YARN and HDFS for real: a host is lost, one is decommissioned, and no row is lost or doubled."""

from pathlib import Path

import pytest

from tests.helpers.on_cluster import run_on
from tidegate.errors import AskedWrongly
from tidegate.spark.clusters.yarn import Yarn


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(AskedWrongly, match="0 NodeManagers"):
        Yarn(0)


@pytest.mark.experiment
def test_a_pipeline_survives_the_loss_of_hosts(hadoop: None, tmp_path: Path) -> None:
    report = run_on("yarn", tmp_path)
    assert report["state"] == "DECOMMISSIONED"
