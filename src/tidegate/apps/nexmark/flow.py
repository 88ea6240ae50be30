"""A query of Nexmark as an application: the events of its kinds, its operators, its verifier."""

from pathlib import Path

from tidegate.apps.application import Application, Settings, Verdict
from tidegate.apps.collected import Collected
from tidegate.apps.event_progress import EventProgress
from tidegate.apps.nexmark.events import SCHEMAS, NexmarkEvents, kind_map
from tidegate.apps.nexmark.options import MEANINGS, nexmark_options
from tidegate.apps.nexmark.query import TASKS, Query
from tidegate.apps.nexmark.reference import compare
from tidegate.apps.numbered import FlowMaker, NumberedFlow, behind, on_arrivals
from tidegate.apps.stretching import stretched_map
from tidegate.pipelines.stream import Stream


def flow_of(query: Query, picking_s: float | None = None) -> FlowMaker:
    """Puts the query behind a source of numbered rows; event time follows the settings' rate.

    With `picking_s`, the maps that pick its inputs have tasks of their own, in which they take so
    many seconds for each event of their kind.
    """
    own = None if picking_s is None else TASKS

    def flow(source: Stream, settings: Settings, directory: Path) -> NumberedFlow:
        options = nexmark_options(settings.extra)
        events = NexmarkEvents(settings.rate, settings.seed, options.speed, options.hot_every)
        inputs = [
            source.map(kind_map(events, pick.kind), SCHEMAS[pick.kind], name=pick.kind).map(
                stretched_map(pick.rows, picking_s),
                pick.schema,
                name=f"picked_{pick.kind}",
                tasks=own,
            )
            for pick in query.picks
        ]
        answers = query.build(inputs, settings.times(query.stretched_s))
        collected = Collected(directory)

        def verify(checkpoint: str, arrived: int) -> Verdict:
            progress = None
            if query.closed is not None:
                progress = EventProgress.of(checkpoint, query.closed)
            return compare(query, events, arrived, collected.rows(), progress)

        return NumberedFlow(answers.to(collected, name="answers"), verify)

    return flow


def nexmark_application(query: Query, rate: str, picking_s: float | None = None) -> Application:
    """What `tidegate app` lists and runs; `picking_s` as above."""
    flow = flow_of(query, picking_s)
    name = f"nexmark-{query.name}"
    return Application(
        name=name,
        paper="Nexmark",
        about=query.about,
        rate=rate,
        target="3 seconds",
        cores=(1, 12),
        operators=query.operators,
        stretched_s=query.stretched_s,
        most_tasks=lambda _: dict.fromkeys(query.operators, TASKS[1]),
        build=on_arrivals(name, flow),
        behind=behind(flow),
        options=MEANINGS,
        read_options=nexmark_options,
    )
