"""A real HDFS on one machine: a NameNode and a DataNode as child processes, for tests.

Permissions are checked as on a cluster: `user` of a URL or HADOOP_USER_NAME says who asks, and the
user of this process is the superuser.
"""

import atexit
import shutil
import tempfile
from pathlib import Path
from typing import Any, Self

from tidegate.spark.clusters.hadoop import HOST, Daemon, asked, write_site
from tidegate.spark.ports import free_ports

_NAMENODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATANODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_FOLLOWING = "dfs.client.block.write.locateFollowingBlock"
_ADMIN = "org.apache.hadoop.hdfs.tools.DFSAdmin"


class Hdfs:
    """A NameNode and a DataNode from the creation until `close`: `with Hdfs() as hdfs: ...`."""

    def __init__(self, directory: Path | None = None) -> None:
        """Format a new filesystem in `directory`, by default a temporary one, and start it."""
        self._owned = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="tidegate-hdfs-"))
        self._port, self._page = free_ports(2)
        self._namenode = Daemon("the NameNode", _NAMENODE, self.directory / "namenode")
        self._datanode = Daemon("the DataNode", _DATANODE, self.directory / "datanode")
        atexit.register(self.close)
        try:
            for daemon in (self._namenode, self._datanode):
                self.configure(daemon.configuration)
            self._namenode.run(_NAMENODE, "-format", "-nonInteractive")
            self._namenode.start()
            self._datanode.start()
            self.wait()
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """The URL of its root, without a slash at the end."""
        return f"hdfs://{HOST}:{self._port}"

    @property
    def web(self) -> str:
        """The address of the NameNode's web server, which also answers WebHDFS."""
        return f"http://{HOST}:{self._page}"

    def settings(self) -> dict[str, str | int | bool]:
        """What clients have to know, as in `core-site.xml` and `hdfs-site.xml`."""
        return {
            "fs.defaultFS": self.url,
            "dfs.namenode.http-address": f"{HOST}:{self._page}",
            "dfs.replication": 1,
            # Who closes a file before the DataNode has reported its block waits 400 ms by default,
            # and then twice as long each time. Files of a checkpoint are small and many.
            f"{_FOLLOWING}.initial.delay.ms": 10,
            f"{_FOLLOWING}.retries": 12,
        }

    def configure(self, directory: Path) -> None:
        """Write the files of a configuration directory (HADOOP_CONF_DIR)."""
        write_site(directory, "core-site.xml", self.settings())
        ours: dict[str, str | int | bool] = {
            "dfs.namenode.name.dir": (self.directory / "names").as_uri(),
            "dfs.datanode.data.dir": (self.directory / "blocks").as_uri(),
            "dfs.datanode.address": f"{HOST}:0",
            "dfs.datanode.http.address": f"{HOST}:0",
            "dfs.datanode.ipc.address": f"{HOST}:0",
            "dfs.datanode.hostname": HOST,
            "dfs.namenode.datanode.registration.ip-hostname-check": False,
            "dfs.namenode.safemode.extension": 0,
            "dfs.datanode.max.transfer.threads": 256,
            "dfs.namenode.handler.count": 8,
        }
        write_site(directory, "hdfs-site.xml", self.settings() | ours)

    def wait(self) -> None:
        """Wait until files can be written: a DataNode has registered, and no safe mode is on."""
        self._namenode.await_ready(self._writable, "ready for writing")

    def stop_namenode(self) -> None:
        """End the NameNode; its data stay, and `start_namenode` continues with them."""
        self._namenode.kill()

    def start_namenode(self) -> None:
        """Start the NameNode again on the same data and ports, and wait until it serves."""
        self._namenode.start()
        self.wait()

    def safe_mode(self, on: bool) -> None:
        """Turn the NameNode's safe mode on, in which it changes nothing, or off."""
        self._namenode.run(_ADMIN, "-safemode", "enter" if on else "leave")

    def close(self) -> None:
        """End both, and remove their files if their directory is a temporary one."""
        atexit.unregister(self.close)
        self._datanode.kill()
        self._namenode.kill()
        if self._owned:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _writable(self) -> bool:
        told = asked(f"{self.web}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState")
        found: list[dict[str, Any]] = (told or {}).get("beans", [])
        return bool(found) and found[0]["NumLiveDataNodes"] == 1 and not self._safe()

    def _safe(self) -> bool:
        told = asked(f"{self.web}/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo")
        found: list[dict[str, Any]] = (told or {}).get("beans", [])
        return not found or bool(found[0]["Safemode"])
