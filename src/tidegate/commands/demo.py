"""`tidegate demo`: a pipeline that holds its latency target through a surge."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.commands.oracle import oracle_of
from tidegate.commands.output import Json, err, print_json, print_line, print_table
from tidegate.commands.page import DEFAULT_PORT, open_page, stay
from tidegate.control.names import policy_name
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.options import option
from tidegate.units import format_share

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.apps.surge import Surge
    from tidegate.control.control_failure import ControlFailure
    from tidegate.control.record import Record
    from tidegate.sim.microbatch.oracle import Oracle
    from tidegate.spark.master import Master
    from tidegate.view.live.page.shared import PlaceOnPage
    from tidegate.view.live.terminal import LiveView
    from tidegate.view.summary import Summary

POLICY = option("policy")
NOTIFY = option("notify")


def demo(
    seconds: Annotated[float, typer.Option(help="How many seconds rows arrive for.")] = 90.0,
    rate: Annotated[
        str | None,
        typer.Option(
            help="Another load than the surge: constant:300, sine:500+-400/20 (rows a second: mean,"
            " swing, period in seconds), csv:FILE, ...",
            show_default=False,
        ),
    ] = None,
    master: Annotated[
        str, typer.Option(help="Where Spark runs; local[16]: here, with up to 16 tasks at once.")
    ] = "local[16]",
    policy: Annotated[str, typer.Option(help=POLICY.help)] = POLICY.default,
    picture: Annotated[
        str, typer.Option(help="Where to write the picture of the run; an empty name writes none.")
    ] = "out/demo.html",
    seed: Annotated[int, typer.Option(help="Seed of the random keys.")] = 1,
    kafka: Annotated[
        bool, typer.Option("--kafka", help="Send the rows through a real Kafka broker.")
    ] = False,
    page: Annotated[
        bool,
        typer.Option(
            "--page",
            help="Serve a live page for a browser during the run; on a terminal it stays"
            " afterwards, until Ctrl-C.",
        ),
    ] = False,
    port: Annotated[
        int, typer.Option(help="Port of the live page; 0 takes any free one.")
    ] = DEFAULT_PORT,
    notify: Annotated[list[str] | None, typer.Option(help=NOTIFY.help, show_default=False)] = None,
    json: Json = False,
) -> None:
    """Watch a pipeline keep its latency target while its load rises fourfold and falls again.

    It starts Spark on this machine, sends rows through a small pipeline for 90 seconds, and shows
    what is measured and decided. At the end there is a summary, a picture, and a check that every
    row was counted. The operators sleep, as when they call a slow service, so that more tasks help
    even on a machine with few cores.
    """
    if not 0.1 <= seconds <= 86_400.0:
        raise AskedWrongly(
            f"a demo of {seconds:g} seconds is not possible; give 0.1 to 86400 (a day)"
        )
    # Imported here because Spark takes a second to import, which would slow down `--help`.
    from tidegate.apps.surge import CORES, TARGET_S, run_surge
    from tidegate.spark.master import parse_master
    from tidegate.spark.notices.receivers import notify_settings
    from tidegate.spark.session import session
    from tidegate.view.live.terminal import LiveView
    from tidegate.workload.parse import parse_profile

    policy = policy_name(policy)
    notify_settings({"notify": notify or (), "notify_after": option("notify_after").default})
    profile = None if rate is None else parse_profile(rate)
    where = parse_master(master)
    most = min(CORES[1], where.cores or CORES[1])
    if kafka:
        _require_kafka(where)
    place = open_page(port, "demo") if page else None
    beside = "a Kafka broker and " if kafka else ""
    err.print(
        f"starting {beside}Spark on {master}, and warming up ...", highlight=False, markup=False
    )
    spark = session(master, "tidegate demo", kafka=kafka)
    try:
        with LiveView(err, TARGET_S, "tidegate demo", seconds=seconds) as live:
            shown, failed = _shown(live, place)
            surge = run_surge(
                spark,
                seconds,
                profile=profile,
                policy=policy,
                cores=(min(CORES[0], most), most),
                seed=seed,
                kafka=kafka,
                on_record=shown,
                on_failure=failed,
                notify=notify or (),
            )
    finally:
        spark.stop()
    if place is not None:
        place.feed.over = True
    asked = {"master": master, "rate": rate or "surge", "policy": policy, "kafka": kafka}
    _tell(surge, asked, picture, json)
    if surge.interrupted:
        raise KeyboardInterrupt  # the command line ends with the code for it
    if place is not None and err.is_terminal and not json:
        from tidegate.commands.page_oracle import oracle_until

        place.feed.oracle = oracle_until(surge.records)
        stay(place)


def _shown(
    live: "LiveView", place: "PlaceOnPage | None"
) -> "tuple[Callable[[Record], None], Callable[[ControlFailure], None]]":
    """What is called with each record and each failure: the terminal, and the page if any."""
    if place is None:
        return live.show, live.show_failure
    feed = place.feed

    def shown(record: "Record") -> None:
        feed.add(record)
        live.show(record)

    def failed(failure: "ControlFailure") -> None:
        feed.failed(failure)
        live.show_failure(failure)

    return shown, failed


def _require_kafka(place: "Master") -> None:
    """Refuse what would fail after Spark has started; fetch the broker's jars if need be."""
    from tidegate.spark.kafka.broker import broker_jars
    from tidegate.spark.kafka.client import confluent

    if not place.on_this_machine:
        raise AskedWrongly(
            f"--kafka starts a broker on the loopback, which '{place.url}' cannot reach; give a "
            "local master, or leave --kafka out"
        )
    confluent()
    broker_jars()


def _lines(surge: "Surge", summary: "Summary", least: "Oracle | None", *, kafka: bool) -> list[str]:
    """The run in a sentence, whether its counts are right, and what would have been enough."""
    same = "are the same as" if surge.verified else "DIFFER FROM"
    with_what = "those that were sent to Kafka" if kafka else "those of a batch job over these rows"
    lines = [
        summary.headline,
        f"{surge.counted:,} of {surge.arrived:,} rows are counted; the counts {same} {with_what}.",
    ]
    if least is not None:
        times = summary.core_seconds / least.core_seconds
        within = format_share(least.within)
        only = "" if least.within > 0.99 else f", on time {within} of the time"
        lines.append(
            f"With the future known, {least.core_seconds:,.0f} core-seconds would have been"
            f" enough{only}; this run used {times:.2f} times as many."
        )
    return lines


def _tell(surge: "Surge", asked: dict[str, Any], picture: str, json: bool) -> None:
    """Write the picture, print the figures, and fail if the state is wrong."""
    from tidegate.apps.surge import WARM_S
    from tidegate.view.pages.run import write_picture
    from tidegate.view.summary import summarise

    warm_s = min(WARM_S, surge.seconds / 3)
    summary = summarise(surge.records, warm_up_s=warm_s, static_cores=surge.peak_cores)
    # All rows are known exactly here, and every figure of the demo is to be the same.
    summary = replace(summary, arrived_rows=surge.arrived, rows=surge.counted)
    document: dict[str, Any] = {
        **asked,
        **summary.document(),
        "shed": 0,
        "verified": surge.verified,
    }
    least = oracle_of(surge.records)
    if least is not None:
        document["oracle_core_seconds"] = round(least.core_seconds, 1)
        document["oracle_within_target"] = round(least.within, 4)
        document["cost_vs_oracle"] = round(summary.core_seconds / least.core_seconds, 4)
    if surge.interrupted:
        document["interrupted"] = True
    if picture:
        Path(picture).parent.mkdir(parents=True, exist_ok=True)
        write_picture(surge.records, picture, "tidegate demo", summary=summary)
        document["picture"] = picture
    if json:
        print_json(document)
    else:
        print_table(summary.table("tidegate demo"))
        for line in _lines(surge, summary, least, kafka=asked["kafka"]):
            print_line(line)
        if picture:
            print_line(f"picture: {picture}")
    if not surge.verified:
        raise TidegateError("the state differs from a count of the same rows outside the pipeline")
