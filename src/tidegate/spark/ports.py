"""Free ports for the servers that tests and benchmarks start as child processes."""

import socket


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Ports that nobody listens at; all are held until the last is found, so they differ."""
    held = [socket.create_server((host, 0)) for _ in range(count)]
    try:
        return [int(one.getsockname()[1]) for one in held]
    finally:
        for one in held:
            one.close()
