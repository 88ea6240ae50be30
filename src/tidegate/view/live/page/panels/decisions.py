"""The log of decisions: what was changed or held back, why, and remarks."""

from html import escape

from tidegate.view.live.page.panel import TextPanel
from tidegate.view.live.page.times import clock_time
from tidegate.view.pages.table import html_table


class DecisionsPanel(TextPanel):
    """Decisions that asked for a change, newest first."""

    name = "decisions"
    title = "Decisions"
    about = "What Tidegate changed, or would have, and why; the newest first."
    wide = True

    def html(self) -> str:
        """Now, then the log, then the notes."""
        record, told = self.feed.record, self.feed.decisions()
        if record is None:
            return "<p>Nothing is decided yet.</p>"
        now = f"<p><b>Now:</b> {escape(record.decision.reason)}</p>"
        if told:
            rows = [
                (
                    clock_time(one.at_s),
                    one.what,
                    one.outcome + (f" (for {one.times} ticks)" if one.times > 1 else ""),
                    "; ".join(filter(None, (one.reason, one.expected))),
                )
                for one in told
            ]
            log = html_table("log", "Log", ("UTC", "what", "outcome", "why"), rows)
        else:
            log = "<p>No change was needed so far.</p>"
        notes = "".join(
            f"<li>{clock_time(at_s)} {escape(note)}</li>" for at_s, note in self.feed.notes()
        )
        return now + log + (f"<h3>Notes</h3><ul>{notes}</ul>" if notes else "")
