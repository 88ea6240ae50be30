import pytest

from tidegate.spark.session import session


@pytest.fixture(scope="session")
def spark():
    built = session("local[4]", "tests")
    yield built
    built.stop()
