"""When a process looks for files of the node's cache that are no longer needed."""

from tidegate.spark.state.open_layers import OpenLayers

BATCHES = range(100, 164)


def test_a_process_that_stays_looks_from_time_to_time() -> None:
    layers = OpenLayers()
    looked = [batch for batch in BATCHES if layers.is_time("here", batch)]
    assert 3 <= len(looked) <= 4


def test_processes_that_see_one_batch_each_look_as_often() -> None:
    """Spark ends idle Python workers, so with rare batches each one has processes of its own."""
    looked = [batch for batch in BATCHES if OpenLayers().is_time("here", batch)]
    assert 3 <= len(looked) <= 4
