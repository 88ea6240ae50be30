"""The pipeline as a graph: how full each edge is, and where the bottleneck is."""

from html import escape

from tidegate.view.live.page.panel import TextPanel
from tidegate.view.pages.flow_svg import flow_svg


class NetworkPanel(TextPanel):
    """The flow network of the newest tick, its bottleneck coloured."""

    name = "pipeline"
    title = "Pipeline and bottleneck"
    about = (
        "Rows that each operator gets, and can get. The dashed line is the bottleneck: what limits"
        " the pipeline, or will first."
    )
    wide = True

    def html(self) -> str:
        """The picture, with the bottleneck in words."""
        graph, record = self.feed.graph(), self.feed.record
        words = None if record is None or record.bottleneck is None else record.bottleneck.words
        if graph is None:
            if record is not None and not record.measurement.operators:
                return "<p>Queries that Tidegate is attached to do not tell their operators.</p>"
            return "<p>It is drawn when the first batches have told what each operator costs.</p>"
        label = f"{graph.load:.0%} of what can pass before {graph.operator}"
        said = "" if words is None else f"<p>{escape(words[0].upper() + words[1:])}.</p>"
        return f'{said}<div class="scroll" tabindex="0">{flow_svg(graph, label)}</div>'
