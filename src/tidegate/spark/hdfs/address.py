"""Where a directory on HDFS is: the path, the user, and the NameNodes that answer WebHDFS.

Spark reaches a NameNode by `hdfs://HOST:PORT`, and we reach it by its web server, whose address is
a setting of Hadoop (`dfs.namenode.http-address`). Tasks have no Hadoop configuration, so a driver
that starts a pipeline looks the address up and adds it to the URL as `web=`. Without it, the files
in HADOOP_CONF_DIR are read, and where they say nothing, Hadoop's default port is used.
"""

import getpass
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode
from xml.etree import ElementTree

from tidegate.errors import AskedWrongly

_HTTP_PORT, _HTTPS_PORT = 9870, 9871
"""Hadoop's defaults."""
_FILES = ("core-site.xml", "hdfs-site.xml")
_ANY = "0.0.0.0"

Setting = Callable[[str], str | None]
"""Looks up a setting of Hadoop by its name; None if it is not set."""


def is_hdfs(url: str) -> bool:
    """Whether this is the URL of a directory on HDFS."""
    return url.startswith("hdfs://")


def plain(url: str) -> str:
    """The URL without its options, which differ from start to start for the same directory."""
    return url.partition("?")[0] if is_hdfs(url) else url


@dataclass(frozen=True, slots=True)
class HdfsAddress:
    """A directory on HDFS as WebHDFS knows it."""

    path: str
    """Begins with a slash."""
    user: str
    webs: tuple[str, ...]
    """The web servers of the NameNodes, such as http://HOST:9870; one of them is active."""

    @classmethod
    def of(cls, url: str, setting: Setting | None = None) -> "HdfsAddress":
        """Read a URL such as `hdfs://host:8020/ck?user=me&web=http://host:9870`.

        What it leaves open is looked up, by default in the files of HADOOP_CONF_DIR.
        """
        head, _, query = url.partition("?")
        authority, _, path = head.removeprefix("hdfs://").partition("/")
        options = dict(parse_qsl(query))
        if strange := sorted(set(options) - {"user", "web"}):
            raise AskedWrongly(
                f"'{url}' has the option '{strange[0]}'; expected user=NAME or web=http://HOST:PORT"
            )
        login, _, named = authority.rpartition("@")
        webs = tuple(filter(None, options.get("web", "").split(",")))
        for web in webs:
            if not web.startswith(("http://", "https://")):
                raise AskedWrongly(f"web={web} in '{url}': expected http://HOST:PORT")
        user = options.get("user") or login or default_user()
        if not webs:
            webs = web_addresses(named, setting or of_files())
        return cls("/" + unquote(path).strip("/"), user, tuple(web.rstrip("/") for web in webs))

    def __str__(self) -> str:
        return " or ".join(self.webs)


def resolved(url: str, setting: Setting, user: str) -> str:
    """The URL with all that tasks need to know, which have no Hadoop configuration."""
    found = HdfsAddress.of(url, setting)
    head, _, query = url.partition("?")
    named = "user" in dict(parse_qsl(query)) or "@" in head
    options = {"user": found.user if named else user, "web": ",".join(found.webs)}
    return f"{head}?{urlencode(options, safe=':/,')}"


def default_user() -> str:
    """As whom Hadoop's own clients ask if the cluster has no Kerberos."""
    return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()


def web_addresses(authority: str, setting: Setting) -> tuple[str, ...]:
    """The web servers of the NameNodes behind the host of a URL, which may be a nameservice."""
    default = (setting("fs.defaultFS") or "").removeprefix("hdfs://").partition("/")[0]
    authority = authority or default
    if not authority:
        raise AskedWrongly(
            "the URL names no NameNode, and Hadoop's configuration has no fs.defaultFS; give "
            "hdfs://HOST:PORT/DIRECTORY, or set HADOOP_CONF_DIR"
        )
    secure = setting("dfs.http.policy") == "HTTPS_ONLY"
    scheme, port = ("https", _HTTPS_PORT) if secure else ("http", _HTTP_PORT)
    key = f"dfs.namenode.{scheme}-address"
    if authority in _words(setting("dfs.nameservices")):
        nodes = _words(setting(f"dfs.ha.namenodes.{authority}"))
        keys = [f"{key}.{authority}.{node}" for node in nodes] or [f"{key}.{authority}"]
        found = [address for one in keys if (address := setting(one))]
        if not found:
            raise AskedWrongly(
                f"Hadoop's configuration names no web server of the NameNodes of '{authority}'; "
                f"set {keys[0]}, or add ?web=http://HOST:PORT to the URL"
            )
        return tuple(f"{scheme}://{address}" for address in found)
    host = authority.rpartition(":")[0] or authority
    # The setting is about the configured cluster; a URL may name another one.
    address = setting(key) if authority == default else None
    named, _, configured = (address or f"{host}:{port}").rpartition(":")
    return (f"{scheme}://{host if named in ('', _ANY) else named}:{configured}",)


def of_files() -> Setting:
    """The settings in the files of HADOOP_CONF_DIR; none without it."""
    found: dict[str, str] = {}
    if directory := os.environ.get("HADOOP_CONF_DIR"):
        for name in _FILES:
            found |= _read(Path(directory) / name)
    return found.get


def _read(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise AskedWrongly(f"{path} is not a configuration of Hadoop: {error}") from None
    rows = root.iter("property")
    return {(row.findtext("name") or ""): (row.findtext("value") or "").strip() for row in rows}


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]
