"""PID 1 of the node: sets it up in fresh namespaces, then waits for the harness to end.

It is started by ``unshare`` and ends when its input does, which is when the harness closes it or
dies, however it dies; the kernel then ends every process on the node. It must import nothing but
the standard library, since every start waits for it.
"""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

ADDRESS: Final = "10.88.0.1"
BRIDGE: Final = "slw0"
READY: Final = b"ready\n"
PRIVATE_FOLDERS: Final = (
    "/run",
    "/var/lib/cni",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/log/pods",
)
"""Folders that kubelet and containerd insist on: the node mounts its own over them."""
_SHARED_FOLDERS: Final = ("/run", "/var/lib/kubelet")
_NETWORK_SETTINGS: Final = {
    "net/ipv4/ip_forward": "1",
    "net/bridge/bridge-nf-call-iptables": "1",
}
_MACHINE_SETTINGS: Final = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


def main(node: Path) -> None:
    """Set up the node, report that it is ready, and keep it until the input ends."""
    for folder in PRIVATE_FOLDERS:
        _mount("--bind", str(node / folder.lstrip("/")), folder)
    for folder in _SHARED_FOLDERS:
        # The kubelet's mounts must be visible to containerd and to pods.
        _mount("--make-rshared", folder)
    _shadow_machine_settings(node)
    _make_network()
    os.write(sys.stdout.fileno(), READY)
    _hold()


def _make_network() -> None:
    # A bridge, because some kernels lack the dummy type; the pods' CNI plugin shares it.
    for command in (
        "link set lo up",
        f"link add {BRIDGE} type bridge",
        f"addr add {ADDRESS}/16 dev {BRIDGE}",
        f"link set {BRIDGE} up",
        # Without a default route the kubelet finds no address of its node.
        f"route add default via {ADDRESS} dev {BRIDGE}",
    ):
        _run("ip", *command.split())
    for name, value in _NETWORK_SETTINGS.items():
        setting = Path("/proc/sys", name)
        if setting.exists():
            setting.write_text(value)


def _shadow_machine_settings(node: Path) -> None:
    # The kubelet would change these for the whole machine, so it must find them as it wants them.
    for name, value in _MACHINE_SETTINGS.items():
        setting = Path("/proc/sys", name)
        if setting.exists():
            shadow = node / name.replace("/", ".")
            shadow.write_text(f"{value}\n")
            _mount("--bind", str(shadow), str(setting))


def _hold() -> None:
    # Orphans of containerd become children of PID 1, which has to reap them.
    wake_reader, wake_writer = os.pipe()
    os.set_blocking(wake_writer, False)
    signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        _bury()
        readable, _, _ = select.select([sys.stdin, wake_reader], [], [])
        if wake_reader in readable:
            os.read(wake_reader, 4096)
        if sys.stdin in readable and not os.read(sys.stdin.fileno(), 4096):
            return


def _bury() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _mount(*arguments: str) -> None:
    _run("mount", *arguments)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
