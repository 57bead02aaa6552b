"""Folders of this machine in containers that have no image of their own, read-only."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from testbed.chain.manifests import Manifest

_SYSTEM = (Path("/usr"), Path("/lib"), Path("/lib64"))


class Mounts(NamedTuple):
    """The parts of a pod and of its container."""

    volumes: list[Manifest]
    volume_mounts: list[Manifest]


def program(*more: Path) -> dict[str, Path]:
    """Return what a Python process needs, by where: interpreter, system libraries, and more."""
    places = dict.fromkeys([*_SYSTEM, Path(sys.base_prefix), *more])
    return {str(path): path for path in places if path.exists()}


def mounts(places: Mapping[str, Path]) -> Mounts:
    """Return how folders come to where they are wanted."""
    named = {f"host-{n}": place for n, place in enumerate(places.items())}
    return Mounts(
        volumes=[{"name": n, "hostPath": {"path": str(path)}} for n, (_, path) in named.items()],
        volume_mounts=[
            {"name": n, "mountPath": at, "readOnly": True} for n, (at, _) in named.items()
        ],
    )
