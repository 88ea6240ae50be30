"""A standalone Spark cluster whose workers are on several hosts of this machine.

Master and workers are the processes that a real cluster has, from the installed PySpark. The master
runs beside the driver. Each worker runs on its host, with directories of its own.
"""

import json
import os
import sys
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import pyspark

from tidegate.errors import TidegateError
from tidegate.spark.child import GuardedChild
from tidegate.spark.clusters.hosts import Host, Hosts
from tidegate.spark.java import find_java
from tidegate.spark.ports import free_ports
from tidegate.spark.session import import_roots

_READY_S, _STOP_S = 90.0, 10.0
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_TIMEOUT_S = 15
"""A worker that is silent for so long is lost; Spark's default is a minute."""


class Standalone:
    """A master and a worker on each host, from the creation until `close`."""

    def __init__(self, hosts: Hosts, *, cores: int = 2, memory: str = "2g") -> None:
        """`cores` and `memory` are what each worker offers to executors."""
        self.hosts, self._cores, self._memory = hosts, cores, memory
        self._home = Path(pyspark.__file__).parent
        self._port, self._page = free_ports(2, hosts.address)
        self._workers: dict[str, GuardedChild] = {}
        words = ["--host", hosts.address, "--port", str(self._port)]
        self._master = GuardedChild(
            [*self._class(_MASTER), *words, "--webui-port", str(self._page)],
            hosts.directory / "master.log",
            self._environment(hosts.address, hosts.directory / "master"),
        )
        try:
            self._await(lambda: self._told() is not None, "the master to answer")
            for number in range(len(hosts)):
                self.start_worker(hosts[number])
            self.wait_for_workers(len(hosts))
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """The master's URL."""
        return f"spark://{self.hosts.address}:{self._port}"

    def settings(self) -> dict[str, str | int | float | bool]:
        """What a session on this cluster needs to be told: `tg.session(cluster.url, **...)`."""
        return {
            "spark.driver.host": self.hosts.address,
            "spark.driver.bindAddress": self.hosts.address,
            "spark.executor.cores": self._cores,
            "spark.executor.memory": "1g",
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(import_roots()),
            "spark.ui.enabled": False,
            "spark.network.timeout": "20s",
            "spark.executor.heartbeatInterval": "3s",
        }

    def start_worker(self, host: Host) -> None:
        """Start the worker of a host, also again after `host.kill()`."""
        if (old := self._workers.pop(host.name, None)) is not None:
            old.kill()
        words = ["--host", host.address, "--webui-port", "0"]
        words += ["--cores", str(self._cores), "--memory", self._memory]
        words += ["--work-dir", str(host.directory / "work"), self.url]
        self._workers[host.name] = GuardedChild(
            host.command([*self._class(_WORKER), *words]),
            host.directory / "worker.log",
            self._environment(host.address, host.temporary),
        )

    def alive(self) -> int:
        """The workers that the master takes for alive."""
        told = self._told() or {}
        return sum(worker["state"] == "ALIVE" for worker in told.get("workers", []))

    def wait_for_workers(self, count: int) -> None:
        """Wait until so many workers are alive."""
        self._await(lambda: self.alive() == count, f"{count} workers")

    def close(self) -> None:
        """End workers and master."""
        for worker in self._workers.values():
            worker.kill()
        self._workers = {}
        self._master.stop(_STOP_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _class(self, name: str) -> list[str]:
        jars = str(self._home / "jars" / "*")
        return [str(find_java().binary), "-Xmx512m", "-XX:+UseSerialGC", "-cp", jars, name]

    def _environment(self, address: str, temporary: Path) -> Mapping[str, str]:
        temporary.mkdir(parents=True, exist_ok=True)
        return {
            **os.environ,
            "SPARK_HOME": str(self._home),
            "SPARK_LOCAL_IP": address,
            "SPARK_LOCAL_DIRS": str(temporary),
            "TMPDIR": str(temporary),
            "XDG_CACHE_HOME": str(temporary / "cache"),
            "PYSPARK_PYTHON": sys.executable,
            "JDK_JAVA_OPTIONS": f"-Dspark.worker.timeout={_TIMEOUT_S}",
        }

    def _told(self) -> Mapping[str, Any] | None:
        """What the master tells of itself; None before it answers."""
        url = f"http://{self.hosts.address}:{self._page}/json/"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                told: Mapping[str, Any] = json.load(answer)
        except (OSError, ValueError):
            return None
        return told

    def _await(self, condition: Any, what: str) -> None:
        until_s = time.monotonic() + _READY_S
        while not condition():
            if self._master.process.poll() is not None or time.monotonic() > until_s:
                log = (self.hosts.directory / "master.log").read_text(errors="replace")
                raise TidegateError(f"waited in vain for {what}: {log[-1500:]}")
            time.sleep(0.1)
