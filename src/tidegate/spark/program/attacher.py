"""Attaches to a program's Spark application as soon as the program has a session."""

import logging
import threading
from collections.abc import Callable

from pyspark import SparkContext
from pyspark.sql import SparkSession

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.logs import reason
from tidegate.spark.foreign_session import use_this_interpreter
from tidegate.spark.kafka.connector import add_connector, has_connector
from tidegate.spark.loop.attach import Attachment, attach_to_all
from tidegate.spark.master import parse_master
from tidegate.spark.program.config_watch import BOUNDS, ConfigWatch
from tidegate.spark.program.settings import ProgramSettings

log = logging.getLogger("tidegate")

EXAMPLE_MASTER = "local-cluster[3,1,1024]"


class Refused(BaseException):
    """Ends a program that Tidegate cannot control as asked.

    It is raised inside the program. No `except Exception` there may take it for the program's own.
    """

    def __init__(self, error: TidegateError) -> None:
        super().__init__(str(error))
        self.error = error


class Attacher:
    """Follows the sessions of a program; there is one attachment for each Spark application.

    A program may stop its context and build another: then the next application gets its own.
    """

    def __init__(
        self,
        settings: ProgramSettings,
        *,
        say: Callable[[str], None],
        on_attached: Callable[[Attachment], None],
    ) -> None:
        self.attachments: list[Attachment] = []
        """One for each application so far, oldest first."""
        self._settings = settings
        self._say = say
        self._on_attached = on_attached
        self._lock = threading.RLock()
        self._context: SparkContext | None = None
        """The context that was attached to last."""

    def session(self, session: SparkSession) -> None:
        """Attach to the application of this session, unless that was done."""
        if session.sparkContext is self._context:
            return
        with self._lock:
            if session.sparkContext is self._context:
                return
            self._context = session.sparkContext
            self._do(lambda: self._attach(session))

    def remote(self) -> None:
        """Refuse Spark Connect, whose driver is out of reach."""
        self._refuse(
            AskedWrongly(
                "this program uses Spark Connect, whose driver is another process; Tidegate runs"
                " inside the driver, so let the program build its session with a master"
            )
        )

    def kafka(self, session: SparkSession) -> None:
        """Give the session Kafka's connector, which pyspark does not bring."""
        if self._settings.kafka is not False:
            self._do(lambda: self._bring_connector(session))

    def stop(self) -> None:
        """End control; queries and executors stay as they are."""
        for attachment in self.attachments:
            try:
                attachment.stop()
            except Exception as error:  # Spark may be gone already, in whatever way
                log.warning("the control loop could not be stopped cleanly: %s", reason(error))

    def _bring_connector(self, session: SparkSession) -> None:
        if not has_connector(session):
            self._say("this session has no Kafka connector, so it gets Tidegate's")
            add_connector(session)

    def _attach(self, session: SparkSession) -> None:
        options = dict(self._settings.attach)
        master = parse_master(str(session.sparkContext.master))
        if self._settings.master not in (None, master.url):
            self._say(
                f"the program sets its master itself, so it runs on {master.url} and not on"
                f" {self._settings.master}"
            )
        if master.in_one_process:
            options |= {"cores": None, "executors": None}
            self._say(
                f"{master.url} has no executors to scale: queries are only measured and recorded;"
                " to scale, run it on a cluster, or on this machine with"
                f" --master '{EXAMPLE_MASTER}'"
            )
        use_this_interpreter(session)
        if self._settings.kafka:
            self._bring_connector(session)
        attachment = attach_to_all(session, **options)
        config = self._settings.config
        if config is not None:
            left_out = BOUNDS if master.in_one_process else ()
            attachment.watchers.append(ConfigWatch(config, attachment.update, left_out=left_out))
        self.attachments.append(attachment)
        self._on_attached(attachment)

    def _do(self, step: Callable[[], None]) -> None:
        """Take a step of ours inside the program, which must not fail by a mistake of ours."""
        try:
            step()
        except TidegateError as error:
            self._refuse(error)
        except Exception as error:
            log.warning("unexpected %s; the program runs on without Tidegate", reason(error))

    def _refuse(self, error: TidegateError) -> None:
        """End the program; from another thread that is not possible, so it runs on."""
        if threading.current_thread() is threading.main_thread():
            raise Refused(error)
        log.warning("%s; the program runs on without Tidegate", error)
