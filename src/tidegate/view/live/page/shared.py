"""The pages of this process: pipelines that name the same port share one page."""

import threading
from dataclasses import dataclass

from tidegate.view.live.page.address import PageAddress, parse_address
from tidegate.view.live.page.feed import Feed
from tidegate.view.live.page.server import Page

_PAGES: dict[PageAddress, Page] = {}
"""By the address that was asked for."""
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class PlaceOnPage:
    """A pipeline's place on a page. The last one to leave closes the page."""

    page: Page
    feed: Feed

    def leave(self) -> None:
        """Take the pipeline off the page."""
        with _LOCK:
            self.page.remove(self.feed)
            if self.page.feeds:
                return
            for asked in [one for one, page in _PAGES.items() if page is self.page]:
                del _PAGES[asked]
        self.page.close()


def check_page(asked: int | str) -> None:
    """Refuse an address that is wrong or taken, before anything else is started."""
    address = parse_address(asked)
    with _LOCK:
        if address not in _PAGES:
            address.bound().close()


def place_on_page(asked: int | str, name: str) -> PlaceOnPage:
    """Put a pipeline on the page at this address, which is opened if need be."""
    address = parse_address(asked)
    with _LOCK:
        page = _PAGES.get(address)
        if page is None:
            page = _PAGES[address] = Page(address)
        return PlaceOnPage(page, page.add(name))
