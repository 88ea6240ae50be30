"""A channel's log, without Spark."""

from tidegate.spark.batch.channel import Log
from tidegate.spark.state.files import Durable


def test_a_channel_hands_a_batch_over_once_and_forgets_what_was_read(tmp_path):
    log = Log(Durable(str(tmp_path)))
    log.make()
    assert log.length() == 0
    assert log.commit(0, -1, []) == -1
    assert log.length() == 0, "an empty batch wakes nobody"
    last = -1
    for batch_id in (1, 2, 4, 5, 6, 7):
        log.data.write(f"f{batch_id}", b"x")
        last = log.commit(batch_id, last, [(f"f{batch_id}", 1)])
        assert last == batch_id
    assert log.commit(2, 1, [("another try", 1)]) == 2
    assert log.length() == 8
    assert log.files(0, 8) == ["f1", "f2", "f4", "f5", "f6", "f7"]
    assert log.files(2, 5) == ["f2", "f4"]
    log.forget(8)
    assert log.files(5, 8) == ["f5", "f6", "f7"]
    assert log.data.names() == ["f5", "f6", "f7"]
