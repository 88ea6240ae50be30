"""Files at any path that Spark can write, through the JVM's own filesystems.

The path of a sink is the user's, with the schemes, credentials and settings of their Spark.
`spark.state.files` reaches checkpoints by other means and other URLs.
"""

import re
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

_SPECIAL = re.compile(r"[*?\[\]{}\\]")
"""What means something in a pattern."""
_UNSUPPORTED = "org.apache.hadoop.fs.UnsupportedFileSystemException"


@dataclass(frozen=True, slots=True)
class HadoopDirectory:
    """A directory that a sink writes into."""

    session: SparkSession
    settings: Any
    root: Any
    files: Any
    """Its filesystem."""

    @classmethod
    def of(cls, session: SparkSession, path: str) -> "HadoopDirectory":
        """The directory at a path, as Spark understands it."""
        java: Any = session._jvm
        settings = session._jsparkSession.sessionState().newHadoopConf()
        root = java.org.apache.hadoop.fs.Path(path)
        files = root.getFileSystem(settings)
        return cls(session, settings, files.makeQualified(root), files)

    @property
    def location(self) -> str:
        """Its whole path, with the scheme."""
        return str(self.root.toString())

    def exists(self, name: str) -> bool:
        """Whether there is a file or directory of this name in it."""
        return bool(self.files.exists(self._at(name)))

    def matching(self, pattern: str) -> list[str]:
        """What matches a pattern such as `day=*/part-*`, relative to the directory."""
        java: Any = self.session._jvm
        root = _SPECIAL.sub(r"\\\g<0>", self.location)
        found = self.files.globStatus(java.org.apache.hadoop.fs.Path(f"{root}/{pattern}"))
        return sorted(_below(self.root, one.getPath()) for one in found or [])

    def all_below(self, name: str) -> list[str]:
        """All files in a directory and in the directories in it, relative to that directory."""
        root = self._at(name)
        listed = self.files.listFiles(root, True)
        found = []
        while listed.hasNext():
            found.append(_below(root, listed.next().getPath()))
        return sorted(found)

    def move(self, source: str, target: str) -> None:
        """Rename a file; one that is there already is replaced, in one step where that exists."""
        old, new = self._at(source), self._at(target)
        self.files.mkdirs(new.getParent())
        java: Any = self.session._jvm
        hadoop = java.org.apache.hadoop.fs
        try:
            context = hadoop.FileContext.getFileContext(new.toUri(), self.settings)
        except Py4JJavaError as error:
            if error.java_exception.getClass().getName() != _UNSUPPORTED:
                raise
            self._replace(old, new)
            return
        gateway: Any = self.session.sparkContext._gateway
        how = gateway.new_array(hadoop.Options.Rename, 1)
        how[0] = hadoop.Options.Rename.OVERWRITE
        context.rename(old, new, how)

    def _replace(self, old: Any, new: Any) -> None:
        """Rename on a filesystem that cannot replace: a batch in between is written again."""
        self.files.delete(new, False)
        if not self.files.rename(old, new):
            raise OSError(f"{old} could not be renamed to {new}")

    def remove(self, name: str) -> None:
        """Remove a file, or a directory with all that is in it, if it is there."""
        self.files.delete(self._at(name), True)

    def _at(self, name: str) -> Any:
        java: Any = self.session._jvm
        return java.org.apache.hadoop.fs.Path(self.root, name)


def _below(root: Any, path: Any) -> str:
    above = str(root.toUri().getPath()).rstrip("/")
    return str(path.toUri().getPath())[len(above) + 1 :]
