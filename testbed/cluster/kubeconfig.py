"""Kubeconfig files, which tell programs where the API server is and who they are."""

import json
from pathlib import Path
from typing import Any

from testbed.cluster import pki


def with_certificate(path: Path, *, server: str, client: pki.Certificate, ca: Path) -> Path:
    """Write a kubeconfig for a user with a client certificate."""
    user = {"client-certificate": str(client.certificate), "client-key": str(client.key)}
    return _written(path, server=server, user=user, ca=ca)


def with_token(path: Path, *, server: str, token: str, ca: Path) -> Path:
    """Write a kubeconfig for who has a token."""
    return _written(path, server=server, user={"token": token}, ca=ca)


def _written(path: Path, *, server: str, user: dict[str, str], ca: Path) -> Path:
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "test", "cluster": {"server": server, "certificate-authority": str(ca)}}
        ],
        "users": [{"name": path.stem, "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": path.stem}}],
        "current-context": "test",
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(config, indent=1))  # JSON is YAML.
    return path
