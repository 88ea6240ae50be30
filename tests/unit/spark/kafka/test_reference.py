"""The names of records in a channel: they come back as they were, and no file is taken for one."""

from hypothesis import given
from hypothesis import strategies as st

from tidegate.spark.kafka.reference import RecordsReference

OFFSETS = st.lists(st.integers(0, 10**15), min_size=1, max_size=40, unique=True).map(sorted)


@given(OFFSETS, st.integers(0, 500), st.from_regex(r"[A-Za-z0-9._-]{1,30}", fullmatch=True))
def test_a_name_gives_its_records_back(offsets, partition, topic):
    where = RecordsReference("0000000041-00003-000-ab12cd34", topic, partition, tuple(offsets))
    assert RecordsReference.parsed(str(where)) == where


def test_consecutive_records_make_a_short_name():
    where = RecordsReference("b", "t", 3, (*range(100, 200), 205))
    assert str(where) == "b@t:3:100-199,205"


def test_the_name_of_a_file_is_none():
    assert RecordsReference.parsed("0000000041-00003-000-ab12cd34.arrow") is None
