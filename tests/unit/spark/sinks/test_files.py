"""The names of a sink's files: equal for every try of a batch, different for everything else."""

import uuid
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tidegate.spark.sinks.attempt import Attempt
from tidegate.spark.sinks.files import published_name

TRY = Attempt("shop", "out", "3f2a9c1b-7d11-4b5e-9a3d-0123456789ab", 41)
ENDS = st.sampled_from(["-c000.snappy.parquet", "-c001.json", ".c000.gz.parquet", "-c000.txt"])


@given(st.integers(0, 99_999), st.uuids(), st.uuids(), ENDS, st.sampled_from(["", "day=1/"]))
def test_a_replay_has_the_same_names(task, job, other, end, folder):
    first = published_name(f"{folder}part-{task:05d}-{job}{end}", TRY)
    again = published_name(f"{folder}part-{task:05d}-{other}{end}", replace(TRY, again=True))
    assert first == again == f"{folder}part-out-3f2a9c1b7d11-0000000041-{task:05d}{end}"


def test_tasks_batches_sinks_and_checkpoints_have_names_of_their_own():
    job = uuid.UUID(int=7)
    tries = [
        TRY,
        replace(TRY, batch_id=42),
        replace(TRY, sink="out_2"),
        replace(TRY, query=str(uuid.UUID(int=1))),
    ]
    names = {published_name(f"part-0000{n}-{job}-c000.json", t) for n in (0, 1) for t in tries}
    assert len(names) == 8 and None not in names


def test_what_is_no_part_of_the_output_stays_where_it_is():
    for name in ("_SUCCESS", "._SUCCESS.crc", "v=1/_metadata", ".part-00000.json.crc"):
        assert published_name(name, TRY) is None
