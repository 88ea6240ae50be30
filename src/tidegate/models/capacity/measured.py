"""What a pipeline was measured to process on numbers of cores: samples, and the file they are in.

MST measures how much m machines sustain for ever (II-A). On micro-batches that is a question of
latency as well: the larger a batch, the more of its time is work, and the longer its rows wait. So
a sample has the duration of its batches, and `within` turns it into the throughput that the same
cores have within a latency target.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tidegate.errors import AskedWrongly, nearest
from tidegate.models.capacity.samples import check_sample

FORMAT = "tidegate capacity"
VERSION = 1
CURVES = ("model 1", "model 2")
"""The names of MST's curves (`shapes`)."""
_LEAST_WORK = 0.1
"""Where less than this share of a batch is work on rows, it says too little about them."""
_BEYOND_LEAST = 1.1
"""A batch must take so many times the least time of its tasks before its rows can be the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacitySample:
    """What a saturated pipeline processed on a number of cores."""

    cores: int
    rows_per_s: float
    """Rows of its batches over their duration."""
    batch_s: float | None = None
    """The duration of its batches; None: it did not work in batches."""

    def __post_init__(self) -> None:
        check_sample(self.cores, self.rows_per_s)
        if self.batch_s is not None and not 0.0 < self.batch_s < math.inf:
            raise AskedWrongly(
                f"The capacity sample at {self.cores} cores has batches of {self.batch_s} s, but a"
                " duration must be positive: measure it, or leave it out."
            )

    def within(
        self,
        latency_s: float,
        overhead_s: float,
        *,
        least_s: float = 0.0,
        interval_s: float = 0.0,
    ) -> float | None:
        """tau(T): rows per second on the same cores at a mean latency of `latency_s`.

        A batch of N rows that takes D has c = (D - a) / N of work per row, with a the overhead, so
        tau = (1 - 1.5 a / T) / c (see `BatchCost.throughput`). If T is below what empty batches
        have, it is the latency that can be reached, but never more than a batch has shown that was
        too long already. None if the batch was hardly anything but overhead, or if its tasks took
        no longer than they do at least (L): then other work was the reason, and not the rows.
        """
        # Imported here because it imports SciPy, and the command line reads this module for help.
        from tidegate.models.microbatch.batch_cost import BatchCost, reachable_s

        if self.batch_s is None:
            return self.rows_per_s
        work_s = self.batch_s - overhead_s
        if work_s < _LEAST_WORK * self.batch_s or work_s <= _BEYOND_LEAST * least_s:
            return None
        row_s = work_s * self.cores / (self.rows_per_s * self.batch_s)
        cost = BatchCost(fixed_s=overhead_s, work_s=row_s, least_s=least_s)
        aim_s = reachable_s(latency_s, cost.floor_s(self.cores, interval_s))
        found = cost.throughput(self.cores, aim_s, interval_s=interval_s)
        return min(found, self.rows_per_s) if self.exceeds(latency_s, interval_s) else found

    def exceeds(self, latency_s: float, interval_s: float = 0.0) -> bool:
        """Whether batches as long as this one have at least this mean latency.

        It is 1.5 D, or P/2 + D where a batch ends before its fixed interval P.
        """
        if self.batch_s is None:
            return False
        return max(self.batch_s, interval_s) / 2.0 + self.batch_s >= latency_s


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCapacity:
    """The samples of one pipeline, as `tidegate calibrate` writes them and policies begin with."""

    pipeline: str
    samples: tuple[CapacitySample, ...]
    fixed_s: float = 0.0
    """a0: what a batch takes besides its rows."""
    per_task_s: float = 0.0
    """a1: what each task adds to that."""
    curve: str | None = None
    """The curve of MST that was chosen by validation, such as `model 1`; None: neither was."""
    stretched: bool = False
    """Whether operators took their time by waiting: then cores are tasks that wait side by side."""

    def __post_init__(self) -> None:
        if not self.samples:
            raise AskedWrongly(
                "A measured capacity needs at least one sample: measure the pipeline on a number"
                " of cores."
            )
        if not (0.0 <= self.fixed_s < math.inf and 0.0 <= self.per_task_s < math.inf):
            raise AskedWrongly(
                f"A batch takes {self.fixed_s} s besides its rows and {self.per_task_s} s for each"
                " task: give durations of 0 or more."
            )
        if self.curve is not None and self.curve not in CURVES:
            raise AskedWrongly(
                f"There is no capacity curve '{self.curve}'{nearest(self.curve, CURVES)}"
            )

    @property
    def most_cores(self) -> int:
        """The largest number of cores that was measured."""
        return max(sample.cores for sample in self.samples)

    def within(self, latency_s: float) -> tuple[tuple[int, float], ...]:
        """Pairs (cores, rows per second) at a mean latency of `latency_s`."""
        found = (
            (one.cores, one.within(latency_s, self.fixed_s + self.per_task_s * one.cores))
            for one in self.samples
        )
        return tuple((cores, rate) for cores, rate in found if rate is not None and rate > 0.0)

    def least_latency_s(self, cores: int) -> float:
        """The lowest mean latency that batches on so many cores can keep: that of short ones."""
        from tidegate.models.microbatch.batch_cost import REACHABLE, SOJOURN_BATCHES

        return REACHABLE * SOJOURN_BATCHES * (self.fixed_s + self.per_task_s * cores)

    def refuse_overhead(self, latency_s: float) -> None:
        """Refuse a capacity of which no sample says anything at this latency."""
        if not self.within(latency_s):
            raise AskedWrongly(
                "the capacity file says nothing of rows: its batches were hardly anything but"
                " overhead; measure larger ones"
            )

    def document(self) -> dict[str, Any]:
        """The capacity as plain JSON values."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "pipeline": self.pipeline,
            "fixed_s": self.fixed_s,
            "per_task_s": self.per_task_s,
            **({} if self.curve is None else {"curve": self.curve}),
            **({"stretched": True} if self.stretched else {}),
            "samples": [asdict(sample) for sample in self.samples],
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "MeasuredCapacity":
        """The reverse of `document`; a document that is none is refused in a sentence."""
        if document.get("format") != FORMAT:
            raise AskedWrongly(
                f"its format is {document.get('format')!r}, not '{FORMAT}': give a file that"
                " `tidegate calibrate` wrote"
            )
        if document.get("version") != VERSION:
            raise AskedWrongly(
                f"its version is {document.get('version')!r}, and this release reads {VERSION}:"
                " calibrate again"
            )
        _refuse_unknown(document, _KEYS, "it")
        samples = document.get("samples")
        if not isinstance(samples, Sequence) or isinstance(samples, str):
            raise AskedWrongly("it has no list 'samples': give one entry for each measurement")
        return cls(
            pipeline=str(document.get("pipeline", "")),
            samples=tuple(_sample(entry, place) for place, entry in enumerate(samples, start=1)),
            curve=_text_or_none(document.get("curve"), "'curve'"),
            stretched=_yes_or_no(document.get("stretched", False), "'stretched'"),
            **{name: _number(document.get(name, 0.0), f"'{name}'") for name in _NUMBERS},
        )

    def write(self, path: Path | str) -> None:
        """Write the file that `read_capacity` reads."""
        Path(path).write_text(json.dumps(self.document(), indent=2) + "\n", encoding="utf-8")


_NUMBERS = ("fixed_s", "per_task_s")
_KEYS = ("format", "version", "pipeline", *_NUMBERS, "curve", "stretched", "samples")


def read_capacity(path: Path | str) -> MeasuredCapacity:
    """The measured capacity in a file; a wrong file is refused with what is wrong in it."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(document, dict):
            raise AskedWrongly(
                "it is not a JSON object: give a file that `tidegate calibrate` wrote"
            )
        return MeasuredCapacity.of(document)
    except FileNotFoundError:
        raise AskedWrongly(
            f"There is no capacity file {path}: give the path of one, or leave it out to learn the"
            " capacity online."
        ) from None
    except OSError as error:
        raise AskedWrongly(
            f"The capacity file {path} cannot be read ({error.strerror}): give a JSON file."
        ) from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise AskedWrongly(
            f"The capacity file {path} is not JSON ({error}): give a file that `tidegate"
            " calibrate` wrote."
        ) from None
    except AskedWrongly as error:
        raise AskedWrongly(f"The capacity file {path} cannot be used: {error}") from None


def _sample(entry: Any, place: int) -> CapacitySample:
    name = f"sample {place}"
    if not isinstance(entry, Mapping):
        raise AskedWrongly(f"{name} is not an object: give its cores and rows_per_s")
    _refuse_unknown(entry, ("cores", "rows_per_s", "batch_s"), name)
    for key in ("cores", "rows_per_s"):
        if key not in entry:
            raise AskedWrongly(f"{name} has no '{key}': give its cores and rows_per_s")
    cores, batch_s = entry["cores"], entry.get("batch_s")
    if isinstance(cores, bool) or not isinstance(cores, int):
        raise AskedWrongly(f"the cores of {name} are {cores!r}: give a whole number of at least 1")
    return CapacitySample(
        cores=cores,
        rows_per_s=_number(entry["rows_per_s"], f"rows_per_s of {name}"),
        batch_s=None if batch_s is None else _number(batch_s, f"batch_s of {name}"),
    )


def _refuse_unknown(entry: Mapping[str, Any], known: Sequence[str], name: str) -> None:
    for key in entry:
        if key not in known:
            raise AskedWrongly(f"{name} has an unknown key '{key}'{nearest(key, known)}")


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise AskedWrongly(f"{name} is {value!r}: give a number")
    return float(value)


def _text_or_none(value: Any, name: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise AskedWrongly(f"{name} is {value!r}: give a text")
    return value


def _yes_or_no(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise AskedWrongly(f"{name} is {value!r}: give true or false")
    return value
