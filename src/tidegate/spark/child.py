"""Child processes that end with us, even if we are killed.

Ctrl-C in a terminal goes to all processes of its group. Children that must outlive it, because what
reads from them stops at a batch boundary first, are started in a session of their own. Then nothing
would end them if this process were killed, so a guard does: a shell that waits on a pipe, which
closes when this process is gone.
"""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_GUARD = 'read -r _; kill -9 "$1" 2>/dev/null'


class GuardedChild:
    """A child process whose output goes to a file."""

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,
            )
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "guard", str(self.process.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def stop(self, patience_s: float) -> None:
        """Ask it to end, and kill it if it has not ended in time."""
        self.process.terminate()
        self._dismiss_guard()
        try:
            self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def kill(self) -> None:
        """End it at once: it can clean nothing up."""
        self.process.kill()
        self._dismiss_guard()
        self.process.wait()

    def _dismiss_guard(self) -> None:
        """End the guard before the process is waited for: then its number may be another's."""
        self._guard.kill()
        self._guard.wait()
        assert self._guard.stdin is not None
        self._guard.stdin.close()
