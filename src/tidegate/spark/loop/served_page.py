"""Puts a control loop on a live page: its records and failures go there, and it leaves at the end.

The page is a watcher like any other, so nothing that fails in it reaches the loop. Bokeh is
imported only where a page is asked for.
"""

from tidegate.logs import PipelineLogger
from tidegate.spark.loop.ticker import Ticker


def check_page(asked: int | str | None) -> None:
    """Refuse an address that is wrong or taken, before anything is started."""
    if asked is not None:
        from tidegate.view.live.page.shared import check_page as check

        check(asked)


def serve_page(ticker: Ticker, name: str, asked: int | str | None) -> None:
    """Show a control loop that has not begun to tick on the page at this address, if any."""
    if asked is None:
        return
    from tidegate.view.live.page.shared import place_on_page

    place = place_on_page(asked, name)
    ticker.watchers.append(place.feed.add)
    ticker.failure_watchers.append(place.feed.failed)
    ticker.at_end.append(place.leave)
    ticker.page = place.page.url
    shown = place.page.url.partition("?")[0]
    PipelineLogger("page", name).info("the live page is at %s", shown)
