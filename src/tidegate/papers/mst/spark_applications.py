"""The eight applications as pipelines on Spark: their names there, and the bytes of their rows.

The paper counts megabytes and a pipeline counts rows. So a row's size says what one is in the
other.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.apps.application import Settings
from tidegate.errors import AskedWrongly, nearest
from tidegate.sim.capacity.applications import APPLICATIONS
from tidegate.workload.profile import constant

CATALOGUE = {name: name for name in APPLICATIONS} | {
    "rolling-hashtag-count": "hashtags",
    "rolling-flight-distances": "flights",
}
"""The name of each application in `tidegate app`, by the name of its curve."""
_SAMPLE = 10_000
_SETTINGS = Settings(rate=constant(1000.0), seconds=10.0)


def asked_apps(extra: Mapping[str, str], otherwise: tuple[str, ...]) -> tuple[str, ...]:
    """The application that the option `app` names, by either of its names."""
    name = extra.get("app")
    if name is None:
        return otherwise
    known = {**{there: here for here, there in CATALOGUE.items()}, **{n: n for n in CATALOGUE}}
    if name not in known:
        raise AskedWrongly(f"app={name}: there is no such application{nearest(name, known)}")
    return (known[name],)


def row_bytes(name: str) -> float:
    """The mean size of an application's row: its text with the end of its line, or its fields."""
    return _SIZES[name]()


def _line_bytes(module: str) -> float:
    from importlib import import_module

    from tidegate.apps.storm_benchmark.topology import line_bytes

    topology = import_module(f"tidegate.apps.storm_benchmark.{module}").TOPOLOGY
    return line_bytes(topology.lines(_SETTINGS))


def _tweet_bytes() -> float:
    from tidegate.apps.hashtags.options import HashtagOptions
    from tidegate.apps.hashtags.tweets import HashtagTweets

    tweets = HashtagTweets(_SETTINGS.rate, HashtagOptions(), _SETTINGS.seed)
    texts = tweets.table(np.arange(_SAMPLE, dtype=np.int64))["text"]
    return float(pc.mean(pc.binary_length(texts)).as_py()) + 1.0


def _report_bytes() -> float:
    from tidegate.apps.flights.options import FlightOptions
    from tidegate.apps.flights.tracks import Tracks

    tracks = Tracks(_SETTINGS.rate, FlightOptions().aircraft, _SETTINGS.seed)
    return _field_bytes(tracks.table(np.arange(_SAMPLE, dtype=np.int64)))


def _instance_bytes() -> float:
    from tidegate.apps.vht.instances import Instances
    from tidegate.apps.vht.options import VhtOptions

    seq = np.arange(_SAMPLE, dtype=np.int64)
    instances = Instances(VhtOptions(), _SETTINGS.seed)
    return _field_bytes(pa.table({"levels": instances.levels(seq), "label": instances.labels(seq)}))


def _field_bytes(rows: pa.Table) -> float:
    return float(rows.nbytes / rows.num_rows)


_SIZES: dict[str, Callable[[], float]] = {
    **{
        name: partial(_line_bytes, name.replace("-", "_"))
        for name in ("grep", "rolling-count", "unique-visitor", "page-view", "data-clean")
    },
    "vht": _instance_bytes,
    "rolling-hashtag-count": _tweet_bytes,
    "rolling-flight-distances": _report_bytes,
}
