"""What a browser gets for an address: all pipelines, one of them, or a single plot."""

from collections.abc import Sequence
from html import escape
from typing import Any
from urllib.parse import urlencode

from tidegate.view.live.page.feed import Feed
from tidegate.view.live.page.panel import PagePanel, part, show
from tidegate.view.live.page.panels.backlog import BacklogPanel
from tidegate.view.live.page.panels.cores import CoresPanel
from tidegate.view.live.page.panels.cost import CostPanel
from tidegate.view.live.page.panels.decisions import DecisionsPanel
from tidegate.view.live.page.panels.headline import HeadlinePanel
from tidegate.view.live.page.panels.latency import LatencyPanel
from tidegate.view.live.page.panels.load import LoadPanel
from tidegate.view.live.page.panels.network import NetworkPanel
from tidegate.view.live.page.panels.shedding import SheddingPanel
from tidegate.view.live.page.panels.tasks import TasksPanel
from tidegate.view.live.page.sources import SessionSources
from tidegate.view.live.page.style import PAGE_STYLE, TEMPLATE

PANELS: tuple[type[PagePanel], ...] = (
    HeadlinePanel,
    LatencyPanel,
    LoadPanel,
    CoresPanel,
    BacklogPanel,
    NetworkPanel,
    DecisionsPanel,
    TasksPanel,
    CostPanel,
    SheddingPanel,
)
"""The parts of a pipeline's page, in their order."""
_OF_MANY: tuple[type[PagePanel], ...] = (HeadlinePanel, LatencyPanel, CoresPanel)
"""What the page of several pipelines shows of each."""
LOOK_EVERY_MS = 500
"""How often a session looks for new records."""


class PageSession:
    """The page in one browser: made for its address, then brought up to date."""

    def __init__(self, document: Any, feeds: Sequence[Feed], pipeline: str, plot: str) -> None:
        self._document, self._feeds = document, feeds
        named = [feed for feed in feeds if feed.name == pipeline]
        chosen = named or list(feeds)
        kinds = [kind for kind in PANELS if kind.name == plot]
        if not kinds:
            kinds = list(PANELS if len(chosen) == 1 else _OF_MANY)
        self._sources = [SessionSources(feed) for feed in chosen]
        for sources in self._sources:
            sources.update()
        self._panels: list[PagePanel] = []
        sections = []
        # Bokeh looks for all models of a document whenever one is added, and when a freeze ends.
        with document.models.freeze():
            for place, sources in enumerate(self._sources):
                for kind in kinds:
                    panel = kind(sources)
                    panel.root.name = kind.name if len(chosen) == 1 else f"{kind.name}-{place}"
                    self._panels.append(panel)
                    sections.append(_section(panel, many=len(chosen) > 1))
                    document.add_root(panel.root)
            self._nav = part()
            self._nav.name, self._nav.styles = "nav", {"width": "auto"}
            document.add_root(self._nav)
            self._narrowed = bool(named) or (bool(plot) and len(kinds) == 1)
            self.update(everything=True)
        what, name = "pipeline", chosen[0].name if chosen else "none yet"
        if len(chosen) > 1:
            what, name = "pipelines", "all pipelines"
        document.title = escape(f"{name} · Tidegate")
        document.template = TEMPLATE
        document.template_variables.update(
            page_style=PAGE_STYLE, kind=what, heading=escape(name), sections=sections
        )
        document.add_periodic_callback(self.update, LOOK_EVERY_MS)

    def update(self, everything: bool = False) -> None:
        """Show what is new; `everything` also looks at what cannot have changed.

        The models are not frozen meanwhile: new data adds no model, and the end of a freeze costs
        more than all the rest of an update.
        """
        fresh = {id(sources) for sources in self._sources if sources.update()}
        for panel in self._panels:
            if everything or id(panel.sources) in fresh or panel.alert:
                panel.update()
        show(self._nav, self._links())

    def _links(self) -> str:
        """Links to every pipeline of the page, which may have come since."""
        links = []
        if self._narrowed:
            links.append('<a href="./">everything</a>')
        if len(self._feeds) > 1:
            links += [
                f'<a href="{_address(pipeline=feed.name)}">{escape(feed.name)}</a>'
                for feed in self._feeds
            ]
        links.append('<a href="metrics">metrics</a>')
        return f"<nav aria-label='Pages'>{''.join(links)}</nav>"


def _section(panel: PagePanel, many: bool) -> dict[str, Any]:
    feed, title = panel.feed, panel.title
    if many and isinstance(panel, HeadlinePanel):
        title, address = feed.name, _address(pipeline=feed.name)
    else:
        address = _address(pipeline=feed.name, plot=panel.name)
    return {
        "name": panel.root.name,
        "title": escape(title),
        "about": escape(panel.about),
        "address": address,
        "shape": "wide" if panel.wide else "tall" if panel.tall else "",
    }


def _address(**arguments: str) -> str:
    return escape("?" + urlencode(arguments))
