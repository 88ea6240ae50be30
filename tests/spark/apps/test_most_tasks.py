"""The tasks that an application says its operators can have are those of its pipeline."""

from pathlib import Path

import pytest

from tidegate.apps.application import Settings
from tidegate.apps.catalogue import PLACES, application
from tidegate.workload.parse import parse_profile

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", PLACES)
def test_a_split_is_checked_against_the_pipelines_own_bounds(
    spark, name: str, tmp_path: Path
) -> None:
    app = application(name)
    for module in app.needs:
        pytest.importorskip(module)
    settings = Settings(rate=parse_profile(app.rate), seconds=1.0)
    nodes = app.build(spark, settings, tmp_path).stream.graph.nodes
    bounds = {node: nodes[node].tasks for node in app.operators}
    assert {node: one.most for node, one in bounds.items()} == app.most_tasks({})
    assert {one.least for one in bounds.values()} == {1}
