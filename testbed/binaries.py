"""Third-party programs for tests and benchmarks, found or built from pinned modules.

Where the tests run, only Go modules can be downloaded, no images or release archives, so each
program is built from a small module under ``go/`` whose go.mod pins its version, and kept by
version in the user's cache. This module starts none of them. ``python -m testbed.binaries
NAME...`` prints their paths.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MODULES: Final = Path(__file__).parent / "go"
_VERSION_TIMEOUT_SECONDS: Final = 20
_BUILD_TIMEOUT_SECONDS: Final = 1800
_COMPONENT_VERSION: Final = "k8s.io/component-base/version"


class Unavailable(Exception):  # noqa: N818 - not an error but a reason to skip
    """Something that the tests need is not available on this machine; the message says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """How one program is recognised on PATH and how it is built."""

    module: str
    """Folder under ``go/`` and the Go module in its go.mod that carries the version."""
    requires: str | None
    package: str
    version_arguments: tuple[str, ...] = ("--version",)
    tags: str = ""
    linker_flags: str = ""
    library_numbering: bool = False
    """The version of the Go module is 0.316.0 where the program's own is 3.16.0."""

    @property
    def folder(self) -> Path:
        """The folder of this program's module."""
        return MODULES / self.module

    @property
    def version(self) -> str:
        """What go.mod requires, or a digest of the sources for a program of our own."""
        if self.requires is None:
            sources = b"".join(path.read_bytes() for path in sorted(self.folder.glob("*.go")))
            return hashlib.sha256(sources).hexdigest()[:12]
        pattern = rf"^(?:require |\t){re.escape(self.requires)} v(\S+)"
        found = re.search(pattern, (self.folder / "go.mod").read_text(), re.MULTILINE)
        if found is None:
            raise ValueError(f"{self.folder / 'go.mod'} does not require {self.requires}")
        return _release(found[1]) if self.library_numbering else found[1]


def _release(library_version: str) -> str:
    _, number, patch = library_version.split(".")
    return f"{int(number) // 100}.{int(number) % 100}.{patch}"


def _kubernetes(name: str, version_arguments: tuple[str, ...] = ("--version",)) -> Program:
    return Program(
        module="kubernetes",
        requires="k8s.io/kubernetes",
        package=f"k8s.io/kubernetes/cmd/{name}",
        version_arguments=version_arguments,
        linker_flags=(
            f"-X {_COMPONENT_VERSION}.gitVersion=v{{version}}"
            f" -X {_COMPONENT_VERSION}.gitMajor={{major}}"
            f" -X {_COMPONENT_VERSION}.gitMinor={{minor}}"
        ),
    )


def _prometheus(name: str) -> Program:
    return Program(
        module="prometheus",
        requires="github.com/prometheus/prometheus",
        package=f"github.com/prometheus/prometheus/cmd/{name}",
        # The tests use file and static discovery only; the SDKs of the clouds are 100 MB.
        tags="remove_all_sd",
        linker_flags="-X github.com/prometheus/common/version.Version={version}",
        library_numbering=True,
    )


PROGRAMS: Final[dict[str, Program]] = {
    "kube-apiserver": _kubernetes("kube-apiserver"),
    "kube-controller-manager": _kubernetes("kube-controller-manager"),
    "kube-scheduler": _kubernetes("kube-scheduler"),
    "kubelet": _kubernetes("kubelet"),
    "kube-proxy": _kubernetes("kube-proxy"),
    "kubectl": _kubernetes("kubectl", ("version", "--client")),
    "etcd": Program(
        module="etcd", requires="go.etcd.io/etcd/server/v3", package="go.etcd.io/etcd/server/v3"
    ),
    "kwok": Program(
        module="kwok",
        requires="sigs.k8s.io/kwok",
        package="sigs.k8s.io/kwok/cmd/kwok",
        linker_flags="-X sigs.k8s.io/kwok/pkg/consts.Version=v{version}",
    ),
    "bombardier": Program(
        module="bombardier",
        requires="github.com/codesenberg/bombardier",
        package="github.com/codesenberg/bombardier",
        linker_flags="-X main.version={version}",
    ),
    "prometheus": _prometheus("prometheus"),
    "promtool": _prometheus("promtool"),
    "prometheus-adapter": Program(
        module="prometheus-adapter",
        requires="sigs.k8s.io/prometheus-adapter",
        package="sigs.k8s.io/prometheus-adapter/cmd/adapter",
    ),
    "victoria-metrics": Program(
        module="victoriametrics",
        requires="github.com/VictoriaMetrics/VictoriaMetrics",
        package="github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics",
    ),
    "pause": Program(module="pause", requires=None, package="."),
    "grafana-schema": Program(module="grafana", requires=None, package="."),
}


def binary(name: str) -> Path:
    """A program of the pinned version: given, installed, cached, or built now (minutes, once).

    Raises:
        Unavailable: it is not installed and cannot be built.
    """
    program = PROGRAMS[name]
    return _given(name) or _on_path(name, program) or _cached_or_built(name, program)


def cache() -> Path:
    """Where built programs are kept, outside the checkout."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "slicewatch" / "bin"


def _given(name: str) -> Path | None:
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    found = shutil.which(name, path=folder) if folder else None
    return Path(found).absolute() if found else None


def _on_path(name: str, program: Program) -> Path | None:
    found = shutil.which(name) if program.requires else None
    if found is None:
        return None
    try:
        answer = subprocess.run(
            [found, *program.version_arguments],
            capture_output=True,
            text=True,
            timeout=_VERSION_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = re.findall(r"\d+\.\d+\.\d+[^\s,]*", answer.stdout + answer.stderr)
    return Path(found).absolute() if program.version in said else None


def _cached_or_built(name: str, program: Program) -> Path:
    target = cache() / f"{name}-{program.version}" / name
    if target.exists():
        return target
    with _alone(cache() / f".{program.module}.lock"):
        if not target.exists():  # Another process may have built it while this one waited.
            _build(name, program, target)
    return target


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _build(name: str, program: Program, target: Path) -> None:
    go = _go()
    with tempfile.TemporaryDirectory(dir=cache(), prefix=f".{name}-") as scratch:
        built = Path(scratch) / target.parent.name
        _compile(go, program, built / name)
        # A rename is atomic: the program is complete or absent.
        built.rename(target.parent)


def _compile(go: str, program: Program, output: Path) -> None:
    major, minor, *_ = (*program.version.split("."), "")
    version_flags = program.linker_flags.format(version=program.version, major=major, minor=minor)
    command = [
        go,
        "build",
        "-trimpath",
        f"-ldflags=-s -w {version_flags}",
        f"-tags={program.tags}",
    ]
    done = subprocess.run(
        [*command, "-o", str(output), program.package],
        cwd=program.folder,
        env={**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"},
        capture_output=True,
        text=True,
        timeout=_BUILD_TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode:
        raise Unavailable(f"{output.name} {program.version} does not build: {done.stderr[-2000:]}")


def _go() -> str:
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        raise Unavailable("Go 1.26 is not installed, and the cache has no built program")
    said = subprocess.run(
        [go, "env", "GOVERSION"],
        env={**os.environ, "GOTOOLCHAIN": "local"},
        capture_output=True,
        text=True,
        timeout=_VERSION_TIMEOUT_SECONDS,
        check=False,
    ).stdout.strip()
    # Older versions reject the modules; 1.27 builds an API server whose OpenAPI is broken.
    if not re.match(r"go1\.26(\D|$)", said):
        raise Unavailable(f"Go 1.26 is needed to build the tests' programs, {go} is {said}")
    return go


if __name__ == "__main__":
    for _name in sys.argv[1:]:
        print(binary(_name))
