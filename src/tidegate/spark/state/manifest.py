"""Manifests: a micro-batch is committed by one small file that names all its state files.

A version exists if and only if its manifest exists. The manifests of the newest `KEPT` batches are
kept, and so are the state files that they name. The rest is removed after a commit, never before.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.errors import TidegateError
from tidegate.spark.state.files import Durable
from tidegate.spark.state.version import Version

KEPT = 3
"""How many versions are kept: the newest, and the two before it."""
_SWEEP_EVERY = 64
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class Manifests:
    """The committed versions of one segment."""

    directory: Durable
    state: Durable
    """The directory with a subdirectory of state files for each operator."""

    def committed(self) -> list[int]:
        """The batches with a manifest, oldest first."""
        return [
            int(name.removesuffix(_SUFFIX))
            for name in self.directory.names()
            if name.removesuffix(_SUFFIX).isdigit()
        ]

    def read(self, batch_id: int, shards: Mapping[str, int]) -> dict[str, Version]:
        """The versions after a batch; with -1, the empty ones before the first batch."""
        if batch_id < 0:
            return {operator: Version.empty(count) for operator, count in shards.items()}
        document = self.directory.read_json(_name(batch_id))
        try:
            return {
                operator: Version.from_json(version)
                for operator, version in document["operators"].items()
            }
        except (KeyError, TypeError, ValueError):
            raise TidegateError(
                f"the manifest {self.directory.path(_name(batch_id))} is damaged; nothing was "
                "changed; restore it from a copy of the checkpoint"
            ) from None

    def commit(self, batch_id: int, versions: Mapping[str, Version]) -> None:
        """Make the versions of this batch the current ones, atomically."""
        document = {
            "batch": batch_id,
            "operators": {operator: version.to_json() for operator, version in versions.items()},
        }
        self.directory.write_json(_name(batch_id), document)

    def verify(self, versions: Mapping[str, Version]) -> None:
        """Before a start, check that every state file is complete; an error names a bad one."""
        for operator, version in versions.items():
            folder = self.state.below(operator)
            sizes = folder.sizes()
            for file in version.files:
                size = sizes.get(file.name)
                if size is None:
                    found = "is missing"
                elif size != file.size_bytes:
                    found = f"has {size} bytes, expected {file.size_bytes}"
                elif zlib.crc32(folder.read(file.name)) != file.checksum:
                    found = "is damaged: its checksum differs"
                else:
                    continue
                raise TidegateError(
                    f"the state file {folder.path(file.name)} of operator '{operator}' {found}; "
                    "nothing was changed; restore it from a copy of the checkpoint"
                )

    def clean(self, batch_id: int, versions: Mapping[str, Version]) -> None:
        """After the commit of `batch_id`, remove versions that are no longer needed."""
        old = [batch for batch in self.committed() if batch <= batch_id - KEPT]
        kept = [b for b in self.committed() if batch_id - KEPT < b < batch_id]
        shards = {operator: version.shards for operator, version in versions.items()}
        live = {operator: set(version.names) for operator, version in versions.items()}
        for batch in kept:
            for operator, version in self.read(batch, shards).items():
                live.setdefault(operator, set()).update(version.names)
        for batch in old:
            for operator, version in self.read(batch, shards).items():
                folder = self.state.below(operator)
                for name in version.names - live.get(operator, set()):
                    folder.remove(name)
            self.directory.remove(_name(batch))
        if batch_id % _SWEEP_EVERY == 0:
            self.sweep(batch_id - KEPT, live)

    def sweep(self, until_batch: int, live: Mapping[str, set[str]]) -> None:
        """Remove files of failed attempts: old files that no kept version names."""
        for operator, names in live.items():
            self.state.below(operator).sweep(names, until_batch)

    def tidy(self) -> None:
        """At a start, remove files that earlier runs left behind.

        Only files of committed batches are removed. Files of a batch that is not committed stay
        until it is old, so that even an accidental second start does not harm a running pipeline.
        """
        committed = self.committed()
        if not committed:
            return
        live: dict[str, set[str]] = {}
        for batch in committed:
            for operator, version in self.read(batch, {}).items():
                live.setdefault(operator, set()).update(version.names)
        self.sweep(committed[-1], live)
        self.directory.sweep({_name(batch) for batch in committed}, committed[-1])


def _name(batch_id: int) -> str:
    return f"{batch_id:010d}{_SUFFIX}"
