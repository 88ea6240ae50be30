"""A real YARN on one machine: a ResourceManager and several NodeManagers, with HDFS below it.

Each NodeManager has an address of the loopback of its own (127.0.0.2 and so on) and directories of
its own, so that Spark and YARN take them for different hosts. A NodeManager is lost together with
its containers, as when its machine loses power, or it is decommissioned, as by an administrator.
"""

import atexit
import os
import shutil
import signal
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyspark

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.clusters.hadoop import HOST, Daemon, asked, write_site
from tidegate.spark.clusters.hdfs import Hdfs
from tidegate.spark.clusters.yarn_settings import (
    MANAGER_PORTS,
    ManagerSettings,
    NodeSettings,
    Settings,
)
from tidegate.spark.ports import free_ports
from tidegate.spark.session import import_roots

_MANAGER = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
_NODE = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
_ADMIN = "org.apache.hadoop.yarn.client.cli.RMAdminCLI"
_GONE_S = 10.0
_MOST = 200
_CONFIGURED = "HADOOP_CONF_DIR"


class Yarn:
    """HDFS, a ResourceManager and NodeManagers from the creation until `close`.

    HADOOP_CONF_DIR of this process points at their configuration meanwhile.
    """

    def __init__(self, nodes: int = 3, *, cores: int = 2, memory_mb: int = 2048) -> None:
        """`cores` and `memory_mb` are what each NodeManager offers to containers.

        The master of an application takes a core and 640 MB of one of them.
        """
        if not 1 <= nodes <= _MOST:
            raise AskedWrongly(f"{nodes} NodeManagers: give 1 to {_MOST}")
        self.directory = Path(tempfile.mkdtemp(prefix="tidegate-yarn-"))
        self._before = os.environ.get(_CONFIGURED)
        self._hdfs: Hdfs | None = None
        self._nodes: list[_Node] = []
        self._manager = Daemon("the ResourceManager", _MANAGER, self.directory / "manager")
        ports = tuple(free_ports(MANAGER_PORTS))
        self._settings = ManagerSettings(ports, self.directory / "excluded")
        atexit.register(self.close)
        try:
            self._hdfs = Hdfs(self.directory / "hdfs")
            self._settings.excluded.touch()
            self._configure(self._manager, {})
            self._manager.start()
            ports = tuple(free_ports(3 * nodes))
            for number in range(nodes):
                mine = ports[3 * number : 3 * number + 3]
                self._nodes.append(self._made(number, mine, cores, memory_mb))
                self._nodes[-1].daemon.start()
            self.wait_for_nodes(nodes)
        except BaseException:
            self.close()
            raise
        os.environ[_CONFIGURED] = str(self._manager.configuration)

    @property
    def hdfs(self) -> Hdfs:
        """The filesystem below it."""
        if self._hdfs is None:
            raise TidegateError("this YARN is closed")
        return self._hdfs

    def __len__(self) -> int:
        return len(self._nodes)

    def settings(
        self, *, executor_cores: int = 1, executor_memory: str = "512m"
    ) -> dict[str, str | int | float | bool]:
        """What a session on this cluster needs to be told: `tg.session("yarn", **...)`.

        YARN adds 384 MB to the memory of each executor.

        The Hadoop settings are in HADOOP_CONF_DIR as well. They are repeated for a JVM that was
        started before that was set.
        """
        hadoop = self.hdfs.settings() | self._settings.clients()
        return {
            **{f"spark.hadoop.{name}": value for name, value in hadoop.items()},
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.executor.cores": executor_cores,
            "spark.executor.memory": executor_memory,
            "spark.executor.instances": 1,
            "spark.yarn.am.memory": "256m",
            # All nodes are this machine, so its jars need not be uploaded.
            "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent / 'jars'}/*",
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(import_roots()),
            "spark.ui.enabled": False,
            "spark.network.timeout": "20s",
            "spark.executor.heartbeatInterval": "3s",
        }

    def states(self) -> list[str]:
        """The state of each NodeManager as the ResourceManager sees it, such as RUNNING or LOST."""
        told = self._told()
        ports = [node.settings.ports[0] for node in self._nodes]
        return [str(told[port]["state"]) if port in told else "UNKNOWN" for port in ports]

    def containers(self, number: int) -> int:
        """The containers that run on a NodeManager, the master of an application among them."""
        told = self._told().get(self._nodes[number].settings.ports[0], {})
        return int(told.get("numContainers", 0))

    def node_of_master(self) -> int | None:
        """The NodeManager with the master of a running application; None if none runs."""
        told = asked(f"{self._settings.web}/ws/v1/cluster/apps?states=RUNNING") or {}
        for application in (told.get("apps") or {}).get("app", []):
            page = str(application.get("amHostHttpAddress", "")).rpartition(":")[2]
            for number, node in enumerate(self._nodes):
                if page == str(node.settings.ports[2]):
                    return number
        return None

    def wait_for_nodes(self, count: int) -> None:
        """Wait until so many NodeManagers are running."""

        def enough() -> bool:
            for node in self._nodes:
                if not node.lost and not node.daemon.running:
                    raise TidegateError(f"{node.daemon.name} ended{node.daemon.last_words()}")
            return self.states().count("RUNNING") == count

        self._manager.await_ready(enough, f"aware of {count} running NodeManagers")

    def kill(self, number: int) -> None:
        """Lose a NodeManager with all its containers at once, as by a loss of power."""
        self._nodes[number].kill()

    def decommission(self, number: int, *, patience_s: int = 60) -> None:
        """Take a NodeManager out of service: it gets no new containers.

        Those that it has may end within `patience_s`; then they are killed.
        """
        node = self._nodes[number]
        node.lost = True  # it ends by itself
        node.excluded = True
        self._refresh("-g", str(patience_s), "-server")

    def restart(self, number: int) -> None:
        """Start a NodeManager again that was killed or decommissioned."""
        node = self._nodes[number]
        node.kill()
        if node.excluded:
            node.excluded = False
            self._refresh()
        node.lost = False
        node.daemon.start()

    def close(self) -> None:
        """End all daemons and containers, and remove their files."""
        atexit.unregister(self.close)
        if os.environ.get(_CONFIGURED) == str(self._manager.configuration):
            os.environ.pop(_CONFIGURED)
            if self._before is not None:
                os.environ[_CONFIGURED] = self._before
        for node in self._nodes:
            node.kill()
        self._nodes = []
        self._manager.kill()
        hdfs, self._hdfs = self._hdfs, None
        if hdfs is not None:
            hdfs.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _made(self, number: int, ports: tuple[int, ...], cores: int, memory_mb: int) -> "_Node":
        address = f"127.0.0.{number + 2}"
        place = self.directory / f"node-{number}"
        daemon = Daemon(f"NodeManager {number}", _NODE, place)
        settings = NodeSettings(address, ports, place, cores, memory_mb)
        self._configure(daemon, settings.site())
        return _Node(daemon, settings)

    def _configure(self, daemon: Daemon, own: Settings) -> None:
        self.hdfs.configure(daemon.configuration)
        write_site(daemon.configuration, "yarn-site.xml", self._settings.site() | own)
        write_site(daemon.configuration, "capacity-scheduler.xml", self._settings.queues())

    def _refresh(self, *words: str) -> None:
        """Let the ResourceManager read again which hosts are out of service."""
        told = self._told()
        # The name of an address may be another one where a resolver makes names up.
        out = [node.settings for node in self._nodes if node.excluded]
        hosts = {told.get(one.ports[0], {}).get("nodeHostName", one.address) for one in out}
        self._settings.excluded.write_text("".join(f"{host}\n" for host in hosts))
        self._manager.run(_ADMIN, "-refreshNodes", *words)

    def _told(self) -> dict[int, dict[str, Any]]:
        """What the ResourceManager tells of each NodeManager, by its port."""
        url = f"{self._settings.web}/ws/v1/cluster/nodes"
        found: dict[int, dict[str, Any]] = {}
        # Of a NodeManager that was lost and is back, the second answer is the newer one.
        for query in ("?states=DECOMMISSIONED,LOST,SHUTDOWN", ""):
            told = asked(url + query) or {}
            nodes = (told.get("nodes") or {}).get("node", [])
            found |= {int(node["id"].rpartition(":")[2]): node for node in nodes}
        return found


@dataclass(slots=True)
class _Node:
    """A NodeManager and its containers."""

    daemon: Daemon
    settings: NodeSettings
    lost: bool = False
    excluded: bool = False

    def kill(self) -> None:
        """End it and its containers at once. Their working directories tell whose they are."""
        self.lost = True
        self.daemon.kill()
        until_s = time.monotonic() + _GONE_S
        while (pids := self._containers()) and time.monotonic() < until_s:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        if pids:
            raise TidegateError(f"containers {pids} of {self.daemon.name} did not end")

    def _containers(self) -> list[int]:
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended, or it is somebody else's
                if (entry / "cwd").readlink().is_relative_to(self.settings.local):
                    found.append(int(entry.name))
        return found
