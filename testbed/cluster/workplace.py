"""Where a cluster keeps its files, one cluster at a time, and the clean-up after a killed one.

Everything that could outlive a killed harness is recorded here before it is created: the first
process of the node and the folders for its mounts.
"""

import dataclasses
import fcntl
import json
import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final, Self

from testbed.binaries import Unavailable
from testbed.cluster import cgroups, init, processes, requirements, waiting

_LOCK_SECONDS: Final = 300.0


class Workplace:
    """The folder of the one cluster that this machine can have, locked while in use."""

    def __init__(self, root: Path, lock: IO[str]) -> None:
        self._lock = lock
        self.folder = root / "current"
        self.node = self.folder / "node"
        self.logs = self.folder / "logs"
        self._init_record = self.folder / "init.json"
        self._mountpoints_record = self.folder / "mountpoints.json"

    @classmethod
    def claim(cls, *, wait_seconds: float = _LOCK_SECONDS) -> Self:
        """Wait for the lock, clean up after a killed harness, and create fresh folders.

        Raises:
            Unavailable: another harness kept the lock, or someone else's kubelet runs here.
        """
        root = Path(tempfile.gettempdir()) / "slicewatch-testbed"
        root.mkdir(mode=0o755, exist_ok=True)
        if root.stat().st_uid != os.geteuid():
            # Its content is trusted: it names a process to end.
            raise Unavailable(f"{root} belongs to someone else")
        with ExitStack() as undo:
            lock = undo.enter_context((root / "lock").open("w"))
            try:
                waiting.until(lambda: _locked(lock), what="the lock", seconds=wait_seconds)
            except waiting.ClusterError as error:
                raise Unavailable(f"another test cluster runs here ({root})") from error
            place = cls(root, lock)
            place.sweep()
            requirements.check_unshared()
            place._make_folders()
            undo.pop_all()
        return place

    def record_init(self, identity: processes.Identity) -> None:
        """Record the first process of the node."""
        self._init_record.write_text(json.dumps(dataclasses.asdict(identity)))

    def sweep(self) -> None:
        """End the recorded process and remove cgroups, folders and files. Idempotent."""
        if not self.folder.exists():
            return
        if self._init_record.exists():
            recorded = json.loads(self._init_record.read_text())
            processes.Identity(**recorded).kill()
            cgroups.remove()
        self._remove_mountpoints()
        shutil.rmtree(self.folder)

    def release(self) -> None:
        """Release the lock for the next harness."""
        self._lock.close()

    def _make_folders(self) -> None:
        absent = [
            str(folder)
            for mountpoint in map(Path, init.PRIVATE_FOLDERS)
            for folder in (mountpoint, *mountpoint.parents)
            if not folder.exists()
        ]
        self.logs.mkdir(parents=True)
        self._mountpoints_record.write_text(json.dumps(absent))
        for mountpoint in init.PRIVATE_FOLDERS:
            Path(mountpoint).mkdir(parents=True, exist_ok=True)
            (self.node / mountpoint.lstrip("/")).mkdir(parents=True)

    def _remove_mountpoints(self) -> None:
        if not self._mountpoints_record.exists():
            return
        for folder in json.loads(self._mountpoints_record.read_text()):
            try:
                Path(folder).rmdir()
            except OSError:  # Never created, or someone else's files are in it by now.
                continue


def _locked(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
