"""A machine made of files: a procfs and the kubelet's links, as the tests of processes need them.

Its processes are watched by the time of their start, since the kernel knows nothing of them; one
whose PID is a real process's may be watched by pidfd.
"""

import shutil

from exporter.tenants.owners import Owner
from exporter.tenants.processes import HOST_PID_NAMESPACE, HostProcesses

UID = "0c9a8d5e-3b1f-4c62-9d0e-5a7b6c8d9e0f"
OTHER_UID = "7f1e2d3c-4b5a-4978-8695-a4b3c2d1e0ff"
ID = "4f7a" * 16
OTHER_ID = "b03c" * 16


def cgroup(container=ID, uid=UID):
    return f"0::/kubepods/besteffort/pod{uid}/{container}\n"


class Machine:
    """Attributes: ``now``, the time that its processes' clock shows."""

    def __init__(self, folder, *, namespace=HOST_PID_NAMESPACE):
        self.proc = folder / "proc"
        self.links = folder / "containers"
        self.links.mkdir()
        self.now = 100.0
        (self.proc / "self" / "ns").mkdir(parents=True)
        (self.proc / "self" / "ns" / "pid").symlink_to(namespace)
        self.run(1, "0::/init.scope\n")

    def run(self, pid, text, *, start=7, state="S", comm="python3"):
        """Start a process, in place of the one that has the PID."""
        self.end(pid)
        process = self.proc / str(pid)
        process.mkdir()
        (process / "cgroup").write_text(text)
        zeros = " ".join(["0"] * 18)
        (process / "stat").write_text(f"{pid} ({comm}) {state} {zeros} {start} 0 0\n")

    def end(self, pid):
        shutil.rmtree(self.proc / str(pid), ignore_errors=True)

    def link(self, owner, container=ID):
        """Name a container, as the kubelet does."""
        name = f"{owner.pod}_{owner.namespace}_{owner.container}-{container}.log"
        logs = f"{owner.namespace}_{owner.pod}_{owner.uid}"
        link = self.links / name
        link.symlink_to(f"/var/log/pods/{logs}/{owner.container}/0.log")
        return link

    def processes(self, **how):
        how = {"most_pidfds": 0, **how}
        return HostProcesses(proc=self.proc, containers=self.links, clock=lambda: self.now, **how)


TRAINER = Owner(namespace="ml", pod="train-0", container="main", uid=UID)
SIDECAR = Owner(namespace="ml", pod="train-0", container="tensor-board", uid=UID)
