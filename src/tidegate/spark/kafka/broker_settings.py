"""The configuration of a broker that is alone on the loopback: broker and controller in one."""

from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """Where a broker listens and what it keeps; a restart with the same ones continues."""

    directory: Path
    port: int
    controller_port: int

    @property
    def servers(self) -> str:
        """The value of Kafka's `bootstrap.servers`."""
        return f"{HOST}:{self.port}"

    def properties(self) -> str:
        """The text of `server.properties`."""
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{HOST}:{self.controller_port}",
            "listeners": (f"PLAINTEXT://{self.servers},CONTROLLER://{HOST}:{self.controller_port}"),
            "advertised.listeners": f"PLAINTEXT://{self.servers}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.directory / "data").replace("\\", "\\\\"),
            # A mistyped topic must be an error, not an empty topic.
            "auto.create.topics.enable": "false",
            # Retention goes by record timestamps, which are arrival stamps here and may be old.
            "log.retention.ms": "-1",
            # One node has one replica, and few clients.
            "default.replication.factor": "1",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            # A killed broker is taken for running until its session ends: a restart waits for that.
            "broker.session.timeout.ms": "4000",
            "broker.heartbeat.interval.ms": "1000",
            "num.network.threads": "2",
            "num.io.threads": "4",
            # Kafka sets aside 128 MB for this, and compacts only its own few offsets here.
            "log.cleaner.dedupe.buffer.size": str(4 << 20),
        }
        return "".join(f"{name}={value}\n" for name, value in settings.items())
