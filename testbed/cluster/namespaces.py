"""The node: its own network, mount and PID namespaces, and processes started in them."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from testbed.cluster import init, processes, requirements, waiting
from testbed.cluster.workplace import Workplace

CHECKOUT: Final = Path(__file__).parents[2]
_START_SECONDS: Final = 15.0


class Namespaces:
    """Fresh namespaces, kept open by their PID 1 until closed."""

    def __init__(
        self, place: Workplace, unshare: subprocess.Popen[bytes], identity: processes.Identity
    ) -> None:
        self._place = place
        self._unshare = unshare
        self._started: list[processes.NodeProcess] = []
        self.init = identity
        """The node's PID 1, by its number outside the node."""

    @classmethod
    def open(cls, place: Workplace) -> Self:
        """Create the namespaces, mounts and network of the node."""
        log = place.logs / "init.log"
        with log.open("wb") as errors:
            unshare = subprocess.Popen(
                [*_UNSHARE, sys.executable, "-m", init.__name__, str(place.node)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment(place.folder),
                start_new_session=True,
            )
        said = unshare.stdout.readline() if unshare.stdout else b""
        if said != init.READY:
            unshare.kill()
            unshare.wait()
            raise waiting.ClusterError(f"the node could not be set up:\n{waiting.tail(log)}")
        child = waiting.until(
            lambda: processes.child_of(unshare.pid), what="PID 1", seconds=_START_SECONDS
        )
        identity = processes.Identity.of(child)
        place.record_init(identity)
        return cls(place, unshare, identity)

    def enter_command(self, command: Sequence[str]) -> list[str]:
        """Return the arguments that run a command on the node, in the working directory ``/``."""
        return ["nsenter", "-t", str(self.init.pid), "-n", "-m", "-p", "--", *command]

    def popen(
        self, command: Sequence[str], *, log: str, env: Mapping[str, str] | None = None
    ) -> processes.NodeProcess:
        """Start a process on the node; its output goes to ``logs/<log>.log``.

        It inherits nothing from the caller's environment; it gets only ``env``.
        """
        path = self._place.logs / f"{log}.log"
        with path.open("ab") as output:
            process = processes.NodeProcess(
                self.enter_command(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment(self._place.folder) | dict(env or {}),
                start_new_session=True,  # Ctrl-C is for the harness, which ends them in order.
            )
        process.log = path
        self._started.append(process)
        return process

    def run(
        self,
        command: Sequence[str],
        *,
        stdin: str | None = None,
        seconds: float = waiting.COMMAND_SECONDS,
    ) -> str:
        """Run a short command on the node and return its output.

        Raises:
            ClusterError: it failed or hung; with its standard error.
        """
        try:
            done = subprocess.run(
                self.enter_command(command),
                input=stdin,
                stdin=subprocess.DEVNULL if stdin is None else None,
                capture_output=True,
                text=True,
                timeout=seconds,
                env=environment(self._place.folder),
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise waiting.ClusterError(
                f"{' '.join(command)}: did not end within {seconds:g} s"
            ) from error
        if done.returncode:
            said = done.stderr.strip() or done.stdout.strip()
            raise waiting.ClusterError(f"{' '.join(command)}: status {done.returncode}: {said}")
        return done.stdout

    def close(self) -> None:
        """End PID 1, and with it every process of the node, and wait until all are gone."""
        self.init.kill()
        for process in self._started:
            process.wait()
        for pipe in (self._unshare.stdin, self._unshare.stdout):
            if pipe:
                pipe.close()
        self._unshare.wait()


_UNSHARE: Final = (
    "unshare",
    "--net",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
)


def environment(home: Path) -> dict[str, str]:
    """Return the node's environment, without proxies or settings of whoever runs the tests."""
    return {
        "PATH": requirements.SEARCH_PATH,
        "HOME": str(home),
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "PYTHONPATH": str(CHECKOUT),
        "PYTHONUNBUFFERED": "1",
    }
