"""Hosts as network namespaces: own addresses, lost and cut off by themselves. No Spark here."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.processes import wait_for
from tidegate.errors import AskedWrongly
from tidegate.spark.clusters.hosts import Host, Hosts, why_not
from tidegate.spark.clusters.slow_host import SlowHost

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")

SERVE = "import socket,sys; s=socket.create_server((sys.argv[1], 5000)); print('up', flush=True)\n"
SERVE += "while True: c, _ = s.accept(); c.sendall(b'here'); c.close()"


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with Hosts(2) as made:
        yield made


def serving(host: Host) -> "subprocess.Popen[str]":
    """A server on a host, which says 'here'."""
    words = host.command([sys.executable, "-c", SERVE, host.address])
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def answer(host: Host) -> str | None:
    """What the server of a host says; None if nobody answers."""
    try:
        with socket.create_connection((host.address, 5000), timeout=1.0) as connection:
            return connection.recv(10).decode()
    except OSError:
        return None


def test_a_host_is_reached_lost_and_gone(hosts: Hosts) -> None:
    process = serving(hosts[0])
    assert answer(hosts[0]) == "here"
    assert answer(hosts[1]) is None
    assert hosts[0].pids() == [process.pid]
    hosts[0].kill()
    assert process.wait(10) == -9
    assert hosts[0].pids() == []
    assert answer(hosts[0]) is None


def test_a_host_that_is_cut_off_comes_back_with_its_processes(hosts: Hosts) -> None:
    process = serving(hosts[1])
    hosts[1].cut_off()
    assert answer(hosts[1]) is None
    assert process.poll() is None
    hosts[1].join()
    assert wait_for(lambda: answer(hosts[1]) == "here", 20.0, process)


def test_a_slow_host_gets_less_time(hosts: Hosts) -> None:
    count = "import time\nwhile True: time.sleep(0.002); print('.', flush=True)"
    process = subprocess.Popen(
        hosts[0].command([sys.executable, "-c", count]), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None

    def stopped() -> bool:
        told = Path(f"/proc/{process.pid}/stat").read_text()
        return told.rpartition(")")[2].split()[0] == "T"

    assert not stopped()
    with SlowHost(hosts[0], 10.0):
        for _ in range(3):
            assert wait_for(stopped, 20.0, process)
            assert wait_for(lambda: not stopped(), 20.0, process)
    for _ in range(200):
        assert process.stdout.readline() == ".\n", "and goes on afterwards"


def test_nothing_is_left_behind() -> None:
    with Hosts(3) as hosts:
        names = [hosts[number].name for number in range(len(hosts))]
        directory, address = hosts.directory, hosts.address
        left = serving(hosts[2])
    assert left.wait(10) == -9
    assert not directory.exists()
    shown = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    assert not [name for name in names if name in shown]
    assert address not in subprocess.run(["ip", "addr"], capture_output=True, text=True).stdout


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(AskedWrongly, match="0 hosts"):
        Hosts(0)
    with Hosts(1) as hosts, pytest.raises(AskedWrongly, match="more than 1"):
        SlowHost(hosts[0], 1.0)
