"""Who gets notices: the log always, and the webhooks and functions that `notify` names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidegate.control.notice import Notice
from tidegate.errors import AskedWrongly
from tidegate.logs import PipelineLogger
from tidegate.spark.notices.outbox import Outbox
from tidegate.spark.notices.webhook import Webhook
from tidegate.spark.options import NoticeFunction
from tidegate.units import parse_duration

LOG = "log"


@dataclass(frozen=True, slots=True)
class NotifySettings:
    """The options of notices, checked."""

    webhooks: tuple[str, ...] = field(default=(), repr=False)
    """Their addresses, which are secret."""
    functions: tuple[NoticeFunction, ...] = ()
    after_s: float = 30.0
    """How long the target must be missed before that is told."""

    def outboxes(self, pipeline: str, log: PipelineLogger) -> "list[Outbox[Notice]]":
        """A way to each receiver besides the log."""
        return [
            *(_to_webhook(Webhook(url), pipeline, log) for url in self.webhooks),
            *(_to_function(function, log) for function in self.functions),
        ]


def notify_settings(given: Mapping[str, Any]) -> NotifySettings:
    """The settings for the options `notify` and `notify_after`, or why they are refused."""
    notify = given["notify"]
    several = isinstance(notify, Sequence) and not isinstance(notify, str)
    webhooks: list[str] = []
    functions: list[NoticeFunction] = []
    for one in notify if several else (notify,):
        if callable(one):
            functions.append(one)
        elif isinstance(one, str) and "://" in one:
            Webhook(one)
            webhooks.append(one)
        elif one != LOG:
            raise AskedWrongly(
                f"notify: {_shown(one)} is neither '{LOG}' nor a function nor an address; an"
                " address begins with https:// or http://"
            )
    try:
        after_s = parse_duration(given["notify_after"])
    except AskedWrongly as error:
        raise AskedWrongly(f"notify_after: {error}") from None
    return NotifySettings(tuple(webhooks), tuple(functions), after_s)


def _shown(one: object) -> str:
    """Something that is no receiver; an address without its scheme may have a secret in it."""
    if not isinstance(one, str):
        return f"a {type(one).__name__}"
    begin, slash, _ = one.partition("/")
    return f"'{begin[:60]}{'/...' if slash else ''}'"


def _to_webhook(hook: Webhook, pipeline: str, log: PipelineLogger) -> "Outbox[Notice]":
    return Outbox(hook.shown, lambda notice, wait: hook.send(notice.document(pipeline), wait), log)


def _to_function(function: NoticeFunction, log: PipelineLogger) -> "Outbox[Notice]":
    name = getattr(function, "__qualname__", type(function).__name__)

    def send(notice: Notice, _: object) -> None:
        function(notice)

    return Outbox(f"the function {name}, given as notify,", send, log)
