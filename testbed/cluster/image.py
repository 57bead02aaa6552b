"""A container image of one static program, packed without any image tool or registry."""

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any, Final

PAUSE: Final = "localhost/slicewatch-pause:1"
"""The image of sandboxes and test workloads; pods use it with ``imagePullPolicy: Never``."""
_PROGRAM: Final = "pause"


def pack(program: Path, target: Path, *, reference: str = PAUSE) -> Path:
    """Write a docker-archive with ``program`` as its only file and entry point."""
    layer = _tar({_PROGRAM: (program.read_bytes(), 0o755)})
    config = json.dumps(_config(layer)).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": config_name, "RepoTags": [reference], "Layers": ["layer.tar"]}]
    files = {"manifest.json": json.dumps(manifest).encode(), config_name: config}
    archive = {name: (content, 0o644) for name, content in files.items()}
    target.write_bytes(_tar({**archive, "layer.tar": (layer, 0o644)}))
    return target


def _config(layer: bytes) -> dict[str, Any]:
    return {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": [f"/{_PROGRAM}"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }


def _tar(files: dict[str, tuple[bytes, int]]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, (content, mode) in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), mode
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()
