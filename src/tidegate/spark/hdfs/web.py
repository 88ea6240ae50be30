"""A client of WebHDFS: HDFS by HTTP, as every NameNode and DataNode answers it.

The NameNode answers questions about names, and sends readers and writers of content on to a
DataNode. fsspec has a client as well, but it does not look at what a rename answers, so that two
drivers would both believe to have created a file, and it writes a file by four requests.
"""

import http.client
import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any
from urllib.parse import quote, urlencode, urlsplit

from tidegate.spark.hdfs.address import HdfsAddress
from tidegate.spark.hdfs.patience import PATIENCES, in_worker, tries

_CONNECT_S, _ANSWER_S = 5.0, 60.0
"""A machine that is gone answers no attempt to connect, where one that is busy answers late."""
_PASSING = ("SafeModeException", "RetriableException")
"""Refusals of a NameNode that has just started or taken over; they end by themselves."""
_CONNECTIONS = threading.local()
"""Open connections of this thread, by process and host."""


class HdfsUnavailable(OSError):
    """HDFS does not do what was asked, for a reason outside of the checkpoint."""


class HdfsRefused(HdfsUnavailable, PermissionError):
    """HDFS does not let this user do what was asked."""


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    location: str | None
    content: bytes

    def document(self) -> dict[str, Any]:
        """The JSON object of an answer; empty if it has none."""
        try:
            found = json.loads(self.content)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


class _NoAnswer(Exception):
    """A node could not be reached, or closed the connection."""

    def __init__(self, node: str, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
        self.node = node


class WebHdfs:
    """The files of one HDFS. Paths begin with a slash. Errors are OSErrors of the fitting kind."""

    def __init__(self, address: HdfsAddress) -> None:
        self._address = address
        self._active = 0
        """Which of the NameNodes answered last: of two, one is on standby."""
        self._known = in_worker()
        """Whether it is the right address for sure, so that it is worth to wait for an answer."""

    def status(self, path: str) -> dict[str, Any] | None:
        """What the NameNode knows of a file or directory; None if there is none."""
        try:
            answer = self._named("GET", path, {"op": "GETFILESTATUS"})
        except FileNotFoundError:
            return None
        found: dict[str, Any] = answer.document()["FileStatus"]
        return found

    def entries(self, path: str) -> list[dict[str, Any]]:
        """What is in a directory; FileNotFoundError if it does not exist."""
        answer = self._named("GET", path, {"op": "LISTSTATUS"})
        found: list[dict[str, Any]] = answer.document()["FileStatuses"]["FileStatus"]
        return found

    def make_directory(self, path: str) -> None:
        """Create a directory and those above it."""
        if not self._named("PUT", path, {"op": "MKDIRS"}).document().get("boolean"):
            raise HdfsUnavailable(f"HDFS did not create the directory {path}")

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Remove a file or directory; whether there was one."""
        options = {"op": "DELETE", "recursive": str(recursive).lower()}
        return bool(self._named("DELETE", path, options).document().get("boolean"))

    def rename(self, source: str, target: str) -> bool:
        """Rename, unless the target exists: of several clients that try, one succeeds."""
        options = {"op": "RENAME", "destination": target}
        answer, unsure = self._asked("PUT", source, options)
        if answer.status >= 400:
            raise self._error(answer, source)
        return bool(answer.document().get("boolean")) or (unsure and self._moved(source, target))

    def replace(self, source: str, target: str) -> None:
        """Rename onto a file that may exist; at no time is there none."""
        options = {"op": "RENAME", "destination": target, "renameoptions": "OVERWRITE"}
        answer, unsure = self._asked("PUT", source, options)
        if answer.status < 400:
            return
        error = self._error(answer, source)
        if not (unsure and isinstance(error, FileNotFoundError) and self._moved(source, target)):
            raise error

    def _moved(self, source: str, target: str) -> bool:
        """Whether a rename whose answer was lost was done: the source is known to nobody else."""
        return self.status(source) is None and self.status(target) is not None

    def write(self, path: str, content: IO[bytes], size: int) -> None:
        """Write a whole file, in the place of one that is there."""
        options = {"op": "CREATE", "overwrite": "true"}
        self._content("PUT", path, options, content, size)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Read a part of a file; less than `length` if it ends before. None: all that follows."""
        options = {"op": "OPEN", "offset": str(offset)}
        if length is not None:
            options["length"] = str(length)
        return self._content("GET", path, options).content

    def _named(self, method: str, path: str, options: Mapping[str, str]) -> _Answer:
        """The NameNode's answer, if it did what was asked."""
        answer, _ = self._asked(method, path, options)
        if answer.status >= 400:
            raise self._error(answer, path)
        return answer

    def _asked(self, method: str, path: str, options: Mapping[str, str]) -> tuple[_Answer, bool]:
        """The NameNode's answer, and whether an earlier try may have been done all the same."""
        words = urlencode({"user.name": self._address.user, **options}, safe="/:,")
        unsure = False
        last: Exception | None = None
        passing: _Answer | None = None
        for _ in tries(self._patience_s):
            passing = None
            for number in self._order():
                web = self._address.webs[number]
                url = f"{web}/webhdfs/v1{quote(path)}?{words}"
                try:
                    answer = _request(method, url)
                except _NoAnswer as error:
                    last, unsure = error, True
                    continue
                if _kind(answer) == "StandbyException":
                    last = HdfsUnavailable("it is on standby")
                    continue
                if _kind(answer) in _PASSING:
                    passing = answer
                    continue
                self._active, self._known = number, True
                return answer, unsure
        if passing is not None:
            return passing, unsure
        raise self._unanswered(last)

    @property
    def _patience_s(self) -> float:
        """How long to try. An HDFS that has answered before is waited for: it may fail over."""
        return PATIENCES.failover_s if self._known else PATIENCES.first_s

    def _unanswered(self, last: Exception | None) -> HdfsUnavailable:
        """The sentence about NameNodes that have not answered in time."""
        if not self._known:
            return HdfsUnavailable(
                f"no NameNode answers WebHDFS at {self._address} ({last}); start it, or name the "
                "address of its web server in the URL, as ?web=http://HOST:PORT"
            )
        return HdfsUnavailable(
            f"no NameNode at {self._address} has answered {socket.gethostname()} for "
            f"{PATIENCES.failover_s:g} s ({last}); see to it that one of them is active, and that "
            "this machine reaches its web server"
        )

    def _content(
        self,
        method: str,
        path: str,
        options: Mapping[str, str],
        content: IO[bytes] | None = None,
        size: int = 0,
    ) -> _Answer:
        """Read or write content at a DataNode; at another one if the first does not answer."""
        silent: list[str] = []
        last: Exception | None = None
        for _ in tries(self._patience_s):
            without = {"excludedatanodes": ",".join(silent)} if silent else {}
            try:
                sent_on = self._named(method, path, {**options, **without})
            except HdfsUnavailable:
                if not silent:
                    raise
                silent.clear()  # there is no other one, so those are asked again
                continue
            if sent_on.location is None:
                return sent_on
            if content is not None:
                content.seek(0)
            try:
                answer = _request(method, sent_on.location, content, size)
            except _NoAnswer as error:
                last = error
                silent.append(error.node)
                continue
            if answer.status >= 400:
                raise self._error(answer, path)
            return answer
        raise HdfsUnavailable(
            f"no DataNode of {self._address} has answered {socket.gethostname()} ({last}); start "
            "one, or let this machine reach the web servers of the DataNodes"
        )

    def _order(self) -> Iterator[int]:
        count = len(self._address.webs)
        return iter([(self._active + step) % count for step in range(count)])

    def _error(self, answer: _Answer, path: str) -> OSError:
        """The exception of Hadoop as one of Python's, in a sentence."""
        told = answer.document().get("RemoteException", {})
        kind = _kind(answer)
        message = (str(told.get("message") or "").strip().splitlines() or [""])[0]
        if kind == "FileNotFoundException":
            return FileNotFoundError(path)
        if kind == "FileAlreadyExistsException":
            return FileExistsError(path)
        if kind in _PASSING or "safe mode" in message:
            return HdfsUnavailable(
                f"the NameNode at {self._address} is in safe mode and changes nothing; wait until "
                "it has left it, or end it with 'hdfs dfsadmin -safemode leave'"
            )
        if kind == "AccessControlException":
            return HdfsRefused(
                f"HDFS refuses {path} to the user '{self._address.user}' ({message}); let that "
                "user read and write there, or name another one by HADOOP_USER_NAME or ?user="
            )
        if answer.status == 401:
            return HdfsRefused(
                f"the NameNode at {self._address} asks for a login, which Tidegate cannot give; "
                "give a checkpoint on an HDFS without Kerberos, or on another filesystem"
            )
        return HdfsUnavailable(
            f"HDFS at {self._address} answered {answer.status} for {path}: {kind} {message}".strip()
        )


def _kind(answer: _Answer) -> str:
    if answer.status < 400:
        return ""
    return str(answer.document().get("RemoteException", {}).get("exception", ""))


def _request(method: str, url: str, content: IO[bytes] | None = None, size: int = 0) -> _Answer:
    """One request. A kept connection that the server has closed meanwhile is opened again."""
    parts = urlsplit(url)
    path = f"{parts.path}?{parts.query}"
    headers = {"Content-Type": "application/octet-stream"} if content is not None else {}
    headers["Content-Length"] = str(size)
    place = (os.getpid(), parts.scheme, parts.netloc)
    kept = _connections()
    connection = kept.pop(place, None)
    try:
        if connection is None:
            connection = _opened(parts.scheme, parts.netloc)
        connection.request(method, path, body=content, headers=headers)
        with connection.getresponse() as answer:
            found = _Answer(answer.status, answer.headers.get("Location"), answer.read())
            closes = answer.will_close
    except (OSError, http.client.HTTPException) as error:
        if connection is not None:
            connection.close()
        raise _NoAnswer(parts.netloc, error) from error
    if closes:
        connection.close()
    else:
        kept[place] = connection
    return found


def _connections() -> dict[tuple[int, str, str], http.client.HTTPConnection]:
    if not hasattr(_CONNECTIONS, "kept"):
        _CONNECTIONS.kept = {}
    found: dict[tuple[int, str, str], http.client.HTTPConnection] = _CONNECTIONS.kept
    return found


def _opened(scheme: str, place: str) -> http.client.HTTPConnection:
    kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
    connection = kind(place, timeout=_CONNECT_S)
    connection.connect()
    connection.sock.settimeout(_ANSWER_S)
    return connection
