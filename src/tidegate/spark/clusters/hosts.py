"""Several hosts on one machine: network namespaces with a network of their own.

Each host has its own loopback, an address, and directories for temporary files and caches. They
reach each other and this process through a bridge, and nothing else. Processes of one host can be
killed together, which is what losing a machine is, and a host can be cut off and joined again.
Making namespaces takes root's rights; `why_not` says what is missing.
"""

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tidegate.errors import AskedWrongly, TidegateError

_NETS = tuple(f"10.213.{number}" for number in range(1, 200))
_GONE_S = 10.0
_MOST = 200


def why_not() -> str | None:
    """Why hosts cannot be made on this machine, in one sentence; None if they can be."""
    if shutil.which("ip") is None:
        return "the command 'ip' is not installed (Debian: apt-get install iproute2)"
    if os.geteuid() != 0:
        return "network namespaces are root's to make"
    name = f"tg-try-{os.getpid()}"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if tried.returncode != 0:
        return f"network namespaces are not allowed here: {tried.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return None


@dataclass(frozen=True, slots=True)
class Host:
    """One host: a network namespace, its address, and its own directories."""

    name: str
    """Also the name of its namespace."""
    address: str
    directory: Path = field(repr=False)
    link: str = field(repr=False)
    """The end of its cable, on the bridge's side."""

    @property
    def temporary(self) -> Path:
        """Where its processes keep temporary files and caches; no other host uses it."""
        return self.directory / "tmp"

    def command(self, words: Sequence[str]) -> list[str]:
        """The command line that runs a command on this host."""
        return ["ip", "netns", "exec", self.name, *words]

    def pids(self) -> list[int]:
        """The processes of this host."""
        return [int(word) for word in _ip("netns", "pids", self.name).split()]

    def kill(self) -> None:
        """End all its processes at once, as a loss of power does."""
        until_s = time.monotonic() + _GONE_S
        while (pids := self.pids()) and time.monotonic() < until_s:
            for pid in pids:
                _signal(pid, signal.SIGKILL)
            time.sleep(0.02)
        if pids:
            raise TidegateError(f"processes {pids} of host {self.name} did not end")

    def pause(self) -> None:
        """Stop all its processes where they are."""
        for pid in self.pids():
            _signal(pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let its processes go on."""
        for pid in self.pids():
            _signal(pid, signal.SIGCONT)

    def cut_off(self) -> None:
        """Unplug its cable: its processes run on, and nobody reaches them."""
        _ip("link", "set", self.link, "down")

    def join(self) -> None:
        """Plug its cable in again."""
        _ip("link", "set", self.link, "up")


class Hosts:
    """Hosts from their creation until `close`: `with Hosts(3) as hosts: hosts[0].address`."""

    def __init__(self, count: int) -> None:
        if not 1 <= count <= _MOST:
            raise AskedWrongly(f"{count} hosts: give 1 to {_MOST}")
        if (missing := why_not()) is not None:
            raise TidegateError(f"no hosts can be made on this machine: {missing}")
        self.directory = Path(tempfile.mkdtemp(prefix="tidegate-hosts-"))
        self._tag = f"tg{os.getpid() % 100_000:05d}"
        self._bridge = f"{self._tag}b"
        self._hosts: list[Host] = []
        atexit.register(self.close)
        try:
            self._net = _free_net()
            _ip("link", "add", self._bridge, "type", "bridge")
            _ip("addr", "add", f"{self.address}/24", "dev", self._bridge)
            _ip("link", "set", self._bridge, "up")
            for number in range(count):
                self._hosts.append(self._made(number))
        except BaseException:
            self.close()
            raise

    @property
    def address(self) -> str:
        """The address at which hosts reach this process."""
        return f"{self._net}.1"

    def __getitem__(self, number: int) -> Host:
        return self._hosts[number]

    def __len__(self) -> int:
        return len(self._hosts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes of all hosts, and remove the hosts and their files."""
        atexit.unregister(self.close)
        for host in self._hosts:
            host.resume()
            host.kill()
            _ip("netns", "del", host.name)
        self._hosts = []
        subprocess.run(["ip", "link", "del", self._bridge], capture_output=True)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _made(self, number: int) -> Host:
        name, link, inside = (f"{self._tag}{kind}{number}" for kind in ("h", "v", "i"))
        host = Host(name, f"{self._net}.{number + 10}", self.directory / f"host-{number}", link)
        host.temporary.mkdir(parents=True)
        _ip("netns", "add", name)
        _ip("link", "add", link, "type", "veth", "peer", "name", inside)
        _ip("link", "set", inside, "netns", name)
        _ip("link", "set", link, "master", self._bridge)
        _ip("link", "set", link, "up")
        _ip("-n", name, "addr", "add", f"{host.address}/24", "dev", inside)
        _ip("-n", name, "link", "set", inside, "up")
        _ip("-n", name, "link", "set", "lo", "up")
        return host


def _free_net() -> str:
    """The first three numbers of a network that this machine does not have."""
    known = _ip("-4", "addr", "show") + _ip("-4", "route", "show", "table", "all")
    for net in _NETS:
        if f"{net}." not in known:
            return net
    raise TidegateError("all networks for hosts are taken; remove bridges that were left behind")


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise TidegateError(f"'ip {' '.join(words)}' failed: {done.stderr.strip()}")
    return done.stdout


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
