"""The Kafka client of Python, which is an extra."""

from types import ModuleType

from tidegate.errors import TidegateError


def confluent() -> ModuleType:
    """The package `confluent_kafka`, or one sentence about how to get it."""
    try:
        import confluent_kafka
        import confluent_kafka.admin  # an attribute of the package from now on
    except ImportError as error:
        raise TidegateError(
            f"to produce to Kafka needs the package confluent-kafka ({error}); get it with "
            "pip install 'tidegate[kafka]' (in a checkout: make setup)"
        ) from error
    module: ModuleType = confluent_kafka
    return module


def reason(error: BaseException) -> str:
    """What a Kafka client's exception says, in one line."""
    inner = error.args[0] if error.args else error
    text = inner.str() if hasattr(inner, "str") else str(inner)
    return str(text).strip().splitlines()[0] if str(text).strip() else type(error).__name__
