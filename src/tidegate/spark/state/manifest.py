"""Manifests: a micro-batch is committed by one small file that names all its state files.

A batch is committed if and only if its manifest exists, also in a segment without state. Once it
exists it stays as it is: a second driver that has run the same batch adopts it. The manifests of
the newest `KEPT` batches are kept, and so are the state files that they name. The rest is removed
after a commit, never before.
"""

from bisect import bisect
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tidegate import columns
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.state.files import Durable, Missing
from tidegate.spark.state.version import Version

KEPT = 3
"""How many versions are kept: the newest, and the two before it."""
_SWEEP_EVERY = 64
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a segment has after a committed batch."""

    versions: Mapping[str, Version]
    """The state of each keyed operator."""
    channels: Mapping[str, int]
    """For each channel that it writes, the last batch that was handed over; -1 for none."""


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

    def exists(self, batch_id: int) -> bool:
        """Whether this batch is committed."""
        return self.directory.exists(_name(batch_id))

    def load(self, batch_id: int) -> Manifest:
        """The manifest of a committed batch."""
        document = self.directory.read_json(_name(batch_id))
        try:
            return Manifest(
                {
                    operator: Version.from_json(version)
                    for operator, version in document["operators"].items()
                },
                document.get("channels", {}),
            )
        except (KeyError, TypeError, ValueError):
            raise self._damaged(batch_id) from None

    def _names(self, batch_id: int) -> dict[str, set[str]]:
        """The names of the files of each operator after a batch, without the rest of the manifest.

        Whoever cleans up after every batch needs no more.
        """
        document = self.directory.read_json(_name(batch_id))
        try:
            return {
                operator: {str(file[0]) for file in version["files"]}
                for operator, version in document["operators"].items()
            }
        except (AttributeError, IndexError, KeyError, TypeError):
            raise self._damaged(batch_id) from None

    def _damaged(self, batch_id: int) -> TidegateError:
        return TidegateError(
            f"the manifest {self.directory.path(_name(batch_id))} is damaged; nothing was "
            "changed; restore it from a copy of the checkpoint"
        )

    def read(self, batch_id: int, shards: Mapping[str, int]) -> dict[str, Version]:
        """The versions after a batch; with -1, the empty ones before the first batch."""
        if batch_id < 0:
            return {operator: Version.empty(count) for operator, count in shards.items()}
        return dict(self.load(batch_id).versions)

    def commit(
        self,
        batch_id: int,
        versions: Mapping[str, Version],
        channels: Mapping[str, int] | None = None,
    ) -> Manifest:
        """Commit a batch, and return its manifest: this one, or that of a driver that was quicker.

        Both come from the same plan, the same rows and the same state, so they mean the same.
        """
        manifest = Manifest(dict(versions), dict(channels or {}))
        document = {
            "batch": batch_id,
            "operators": {operator: version.to_json() for operator, version in versions.items()},
            "channels": manifest.channels,
        }
        content = columns.dumps(document).encode()
        if self.directory.create(_name(batch_id), content):
            return manifest
        return self.load(batch_id)

    def extend(self, batch_id: int, versions: Mapping[str, Version]) -> None:
        """Add versions under names that nobody reads yet to the manifest of a committed batch.

        Only the owner of the checkpoint may do so, while nothing runs.
        """
        if not self.directory.replaces:
            raise AskedWrongly(
                f"{self.directory.url} is on a filesystem that cannot replace a file in one step; "
                "copy the checkpoint to another one, or give a new checkpoint"
            )
        document = self.directory.read_json(_name(batch_id))
        added = {operator: version.to_json() for operator, version in versions.items()}
        document["operators"] = {**document["operators"], **added}
        self.directory.write_json(_name(batch_id), document)

    def verify(self, versions: Mapping[str, Version]) -> None:
        """Before a start, check that every state file has its size; an error names a bad one.

        Nothing is read. The bytes of a piece are compared with its checksum where it is opened.
        """
        for operator, version in versions.items():
            folder = self.state.below(operator)
            sizes = folder.sizes()
            for file in version.files:
                size = sizes.get(file.name)
                if size is None:  # a listing may lag behind
                    size = folder.size(file.name)
                if size is None:
                    found = "is missing"
                elif size != file.size_bytes:
                    found = f"has {size} bytes, expected {file.size_bytes}"
                else:
                    continue
                raise TidegateError(
                    f"the state file {folder.path(file.name)} of operator '{operator}' {found}; "
                    "nothing was changed; restore it from a copy of the checkpoint"
                )

    def clean(
        self,
        batch_id: int,
        recent: Iterable[Mapping[str, Version]],
        fallen: Mapping[str, Version] | None = None,
    ) -> None:
        """Remove versions that are older than the newest `KEPT` up to this committed batch.

        `recent` are the versions of those newest batches: their files stay. `fallen` are those of
        the batch before them, where they are known: then its manifest need not be read.
        """
        old = [batch for batch in self.committed() if batch <= batch_id - KEPT]
        live: dict[str, set[str]] = {}
        for versions in recent:
            for operator, version in versions.items():
                live.setdefault(operator, set()).update(version.names)
        for batch in old:
            try:
                if fallen is not None and batch == batch_id - KEPT:
                    found = {operator: version.names for operator, version in fallen.items()}
                else:
                    found = self._names(batch)
            except Missing:
                continue
            for operator, names in found.items():
                self.state.below(operator).remove_all(names - live.get(operator, set()))
        # The state files go first: after a crash in between, the manifest still names the rest.
        self.directory.remove_all(_name(batch) for batch in old)
        if batch_id % _SWEEP_EVERY == 0:
            self.sweep(batch_id - KEPT, live)

    def at_us(self, batch_id: int) -> int | None:
        """The clock of a committed batch; None in a segment without state."""
        clocks = [version.at_us for version in self.load(batch_id).versions.values()]
        return max((us for us in clocks if us is not None), default=None)

    def thin(self, committed: Sequence[int], kept: Collection[int], batch_id: int) -> None:
        """Remove the versions of these batches, oldest first, that are not to be kept.

        A file is in all versions from the one that made it to the last one that needs it. So a
        file of a version that goes is needed if the nearest older or newer one that stays has it.
        """
        staying = sorted(kept)
        gone = [batch for batch in committed if batch not in kept]
        for batch in gone:
            place = bisect(staying, batch)
            beside = [self._names(one) for one in staying[max(0, place - 1) : place + 1]]
            for operator, names in self._names(batch).items():
                live = set().union(*(one.get(operator, set()) for one in beside))
                self.state.below(operator).remove_all(names - live)
        # The state files go first: after a crash in between, the manifest still names the rest.
        self.directory.remove_all(_name(batch) for batch in gone)
        if batch_id % _SWEEP_EVERY == 0:
            every: dict[str, set[str]] = {}
            for batch in staying:
                for operator, names in self._names(batch).items():
                    every.setdefault(operator, set()).update(names)
            self.sweep(batch_id - KEPT, every)

    def sweep(self, until_batch: int, live: Mapping[str, set[str]]) -> None:
        """Remove files of failed attempts: old files that no kept version names."""
        for operator, names in live.items():
            self.state.below(operator).sweep(names, until_batch)

    def tidy(self) -> None:
        """At a start, remove files that earlier runs left behind.

        Only files of batches before the oldest kept manifest are removed: newer ones may belong to
        an attempt that still runs, and cost only space.
        """
        committed = self.committed()
        if not committed:
            return
        live: dict[str, set[str]] = {}
        for batch in committed:
            try:
                found = self._names(batch)
            except Missing:  # too old, and removed meanwhile
                continue
            for operator, names in found.items():
                live.setdefault(operator, set()).update(names)
        self.sweep(committed[0] - 1, live)
        self.directory.sweep({_name(batch) for batch in committed}, committed[-1])


def _name(batch_id: int) -> str:
    return f"{batch_id:010d}{_SUFFIX}"
