"""The adapter as it is, on a Kubernetes in memory that holds given pods.

Ports, TLS, the front proxy's certificate and the exporters' streams are real; only the API
server is the shipped fake. The first argument is a file of pods, the others are the adapter's.
"""

import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from adapter.app import Adapter
from adapter.settings import AdapterSettings
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.objects import POD
from slicewatch.service import logs, tasks
from slicewatch.service.settings import load


class Pods(msgspec.Struct, frozen=True, kw_only=True):
    """Pods of one namespace, as an API server has them."""

    namespace: str
    manifests: list[dict[str, Any]]


async def serve(settings: AdapterSettings, pods: Pods) -> None:
    """Run the adapter until it is told to end."""
    kube = FakeKube()
    for manifest in pods.manifests:
        await kube.create(POD, manifest, pods.namespace)
    await Adapter(settings, kube).run()


if __name__ == "__main__":
    given = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Pods)
    chosen = load(AdapterSettings, sys.argv[2:], os.environ)
    logs.configure(chosen.log_level)
    sys.exit(tasks.run(lambda: serve(chosen, given)))
