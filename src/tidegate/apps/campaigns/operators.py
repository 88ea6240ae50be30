"""The operators of Yahoo's pipeline, as functions of Arrow tables.

`parse` reads the JSON, keeps the views and projects them to two columns: Flink chains these three
steps too. `join` finds the campaign of each ad.
"""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.apps.campaigns.events import LATEST_MS, VIEW
from tidegate.apps.campaigns.identifiers import campaign_of_ads
from tidegate.apps.campaigns.options import CampaignOptions
from tidegate.apps.json_columns import read_objects
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.functions import count, window
from tidegate.pipelines.keyed import KeyedFunction

VIEWS = "ad string, at timestamp"
JOINED = "campaign string, at timestamp"

_EVENT = pa.schema({"ad_id": pa.string(), "event_type": pa.string(), "event_time": pa.int64()})
_TIME = pa.timestamp("us", "UTC")


def parse(rows: pa.Table) -> Derived:
    """A map from events to the views among them: the ad, and when it was seen."""
    read = read_objects(rows["event"], _EVENT)
    seen = pc.equal(read["event_type"], VIEW)
    views = read.filter(seen)
    at = views["event_time"].cast(pa.timestamp("ms", "UTC")).cast(_TIME)
    return Derived(pa.table({"ad": views["ad_id"], "at": at}), seen)


def join(options: CampaignOptions, seed: int) -> Callable[[pa.Table], Derived]:
    """A map from views to the campaigns of their ads. A view of an unknown ad is dropped."""

    def joined(rows: pa.Table) -> Derived:
        table = campaign_of_ads(options, seed)
        place = pc.index_in(rows["ad"], value_set=table["ad"])
        known = pc.is_valid(place)
        campaign = table["campaign"].take(place.filter(known))
        return Derived(pa.table({"campaign": campaign, "at": rows["at"].filter(known)}), known)

    return joined


def views_in_windows(options: CampaignOptions) -> KeyedFunction:
    """Views of each campaign and window of event time, emitted once, when the window is closed."""
    return window(
        count(),
        every=f"{options.window_s} seconds",
        event_time="at",
        delay=f"{LATEST_MS} milliseconds",
    )
