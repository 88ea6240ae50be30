"""Delta Lake recognises a batch by two options. It is not among what the tests can install."""

from tidegate.spark.sinks.attempt import Attempt
from tidegate.spark.sinks.delta import DeltaSink


class Frame:
    """Notes what a writer is told."""

    def __init__(self) -> None:
        self.told: dict[str, object] = {}
        self.write = self

    def format(self, name: str) -> "Frame":
        self.told["format"] = name
        return self

    def mode(self, name: str) -> "Frame":
        self.told["mode"] = name
        return self

    def options(self, **given: str) -> "Frame":
        self.told |= given
        return self

    def partitionBy(self, *names: str) -> "Frame":  # noqa: N802 (Spark's name)
        self.told["partitionBy"] = names
        return self

    def save(self) -> None:
        self.told["saved"] = True


def test_a_replay_names_the_same_transaction():
    query = "3f2a9c1b-7d11-4b5e-9a3d-0123456789ab"
    first, again = Frame(), Frame()
    for frame, replayed in ((first, False), (again, True)):
        sink = DeltaSink((("path", "/t"),), ("day",))
        sink.write(frame, Attempt("shop", "out", query, 41, replayed))
    assert (
        first.told
        == again.told
        == {
            "format": "delta",
            "mode": "append",
            "path": "/t",
            "partitionBy": ("day",),
            "txnAppId": f"tidegate/shop/out/{query}",
            "txnVersion": "41",
            "saved": True,
        }
    )
