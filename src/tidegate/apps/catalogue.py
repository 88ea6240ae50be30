"""All applications, by name. Each is imported when it is asked for."""

from importlib import import_module

from tidegate.apps.application import Application
from tidegate.errors import AskedWrongly, nearest

PLACES = {
    "vld": "tidegate.apps.vld.application",
    "fpd": "tidegate.apps.fpd.application",
    "micro": "tidegate.apps.micro.application",
    "sse": "tidegate.apps.sse.application",
    "grep": "tidegate.apps.storm_benchmark.grep",
    "rolling-count": "tidegate.apps.storm_benchmark.rolling_count",
    "unique-visitor": "tidegate.apps.storm_benchmark.unique_visitor",
    "page-view": "tidegate.apps.storm_benchmark.page_view",
    "data-clean": "tidegate.apps.storm_benchmark.data_clean",
    "vht": "tidegate.apps.vht.application",
    "hashtags": "tidegate.apps.hashtags.application",
    "flights": "tidegate.apps.flights.application",
    "wordcount": "tidegate.apps.wordcount.application",
    "sentiment": "tidegate.apps.sentiment.application",
    "learning": "tidegate.apps.learning.application",
    "campaigns": "tidegate.apps.campaigns.application",
    "nexmark-q1": "tidegate.apps.nexmark.currency",
    "nexmark-q2": "tidegate.apps.nexmark.selection",
    "nexmark-q3": "tidegate.apps.nexmark.local_items",
    "nexmark-q5": "tidegate.apps.nexmark.hot_items",
    "nexmark-q8": "tidegate.apps.nexmark.new_users",
    "nexmark-q11": "tidegate.apps.nexmark.user_sessions",
}
"""The module of each application, which has it as `APPLICATION`."""


def application(name: str) -> Application:
    """The application of this name."""
    if name not in PLACES:
        raise AskedWrongly(f"there is no application '{name}'{nearest(name, PLACES)}")
    found = import_module(PLACES[name]).APPLICATION
    assert isinstance(found, Application)
    return found


def applications() -> list[Application]:
    """All applications, in the order of the papers."""
    return [application(name) for name in PLACES]
