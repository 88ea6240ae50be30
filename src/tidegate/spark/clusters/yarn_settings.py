"""The configuration of a YARN whose NodeManagers are on addresses of one machine's loopback."""

from dataclasses import dataclass
from pathlib import Path

from tidegate.spark.clusters.hadoop import HOST

Settings = dict[str, str | int | bool]

_SILENT_MS = 10_000
"""A NodeManager that is silent for so long is lost; YARN's default is ten minutes."""
_HEARTBEAT_MS = 200
"""How often NodeManagers report, which is when they are given containers; the default is 1 s."""

MANAGER_PORTS = 5


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """Where a ResourceManager listens."""

    ports: tuple[int, ...]
    """For clients, for masters of applications, for NodeManagers, for administrators, its page."""
    excluded: Path
    """The file with the hosts that are out of service."""

    @property
    def web(self) -> str:
        """The address of its page and of its REST API."""
        return f"http://{HOST}:{self.ports[4]}"

    def clients(self) -> Settings:
        """What clients have to know."""
        client, master, tracker, admin, page = (f"{HOST}:{port}" for port in self.ports)
        return {
            "yarn.resourcemanager.hostname": HOST,
            "yarn.resourcemanager.address": client,
            "yarn.resourcemanager.scheduler.address": master,
            "yarn.resourcemanager.resource-tracker.address": tracker,
            "yarn.resourcemanager.admin.address": admin,
            "yarn.resourcemanager.webapp.address": page,
        }

    def site(self) -> Settings:
        """The ResourceManager's part of `yarn-site.xml`."""
        scheduler = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity"
        return self.clients() | {
            "yarn.resourcemanager.scheduler.class": f"{scheduler}.CapacityScheduler",
            "yarn.resourcemanager.nodes.exclude-path": str(self.excluded),
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": _HEARTBEAT_MS,
            "yarn.nm.liveness-monitor.expiry-interval-ms": _SILENT_MS,
            "yarn.scheduler.minimum-allocation-mb": 128,
            "yarn.scheduler.capacity.node-locality-delay": 0,
        }

    def queues(self) -> Settings:
        """`capacity-scheduler.xml`: one queue, in which cores count as well as memory."""
        resource = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
        return {
            "yarn.scheduler.capacity.root.queues": "default",
            "yarn.scheduler.capacity.root.default.capacity": 100,
            "yarn.scheduler.capacity.root.default.maximum-am-resource-percent": 1,
            "yarn.scheduler.capacity.maximum-am-resource-percent": 1,
            "yarn.scheduler.capacity.resource-calculator": resource,
            # One container at each report, so that executors spread over the nodes.
            "yarn.scheduler.capacity.per-node-heartbeat.multiple-assignments-enabled": False,
        }


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Where a NodeManager listens, what it keeps, and what it offers."""

    address: str
    ports: tuple[int, ...]
    """For the ResourceManager, for files of containers, and its page."""
    directory: Path
    cores: int
    memory_mb: int

    @property
    def local(self) -> Path:
        """Below it are the working directories of its containers, and of no other's."""
        return self.directory / "local"

    def site(self) -> Settings:
        """Its part of `yarn-site.xml`."""
        return {
            "yarn.nodemanager.hostname": self.address,
            "yarn.nodemanager.address": f"{self.address}:{self.ports[0]}",
            "yarn.nodemanager.localizer.address": f"{self.address}:{self.ports[1]}",
            "yarn.nodemanager.webapp.address": f"{self.address}:{self.ports[2]}",
            "yarn.nodemanager.local-dirs": str(self.local),
            "yarn.nodemanager.log-dirs": str(self.directory / "logs"),
            "yarn.nodemanager.resource.memory-mb": self.memory_mb,
            "yarn.nodemanager.resource.cpu-vcores": self.cores,
            # Spark's Python workers are not counted in the memory that it asks for, Java reserves
            # more addresses than it uses, and a full disk of ours is no failure.
            "yarn.nodemanager.pmem-check-enabled": False,
            "yarn.nodemanager.vmem-check-enabled": False,
            "yarn.nodemanager.disk-health-checker.enable": False,
            "yarn.nodemanager.sleep-delay-before-sigkill.ms": 250,
        }
