"""What the adapter's pods show and admit on connections of our own, past kube-apiserver."""

import sys
from pathlib import Path
from typing import Final

from testbed.chain.replicas import API_PORT, ReplicaChain

# Verifies nothing, since it is about what the other side does.
_CLIENT: Final = """
import http.client, ssl, sys
port, certificate, key, address = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
context.load_cert_chain(certificate, key)
connection = http.client.HTTPSConnection(address, int(port), context=context, timeout=10)
try:
    connection.request("GET", "/apis/custom.metrics.k8s.io/v1beta2")
    print(connection.getresponse().status)
except (ssl.SSLError, ConnectionError):
    print("refused")
"""
_SHOWN: Final = (
    "import ssl, sys; print(ssl.get_server_certificate((sys.argv[2], int(sys.argv[1]))))"
)


def shown(chain: ReplicaChain) -> list[str]:
    """Return the certificate that each pod serves, as PEM."""
    return _each(chain, _SHOWN)


def admitted(chain: ReplicaChain, proxy: Path) -> set[str]:
    """Return what the pods answer to a client with a certificate: statuses, or ``refused``.

    Args:
        chain: whose pods.
        proxy: path of the certificate and its key, without ``.crt`` and ``.key``.
    """
    files = [str(proxy.with_suffix(ending)) for ending in (".crt", ".key")]
    return set(_each(chain, _CLIENT, *files))


def write(proxy: Path, certificate_pem: bytes, key_pem: bytes) -> Path:
    """Replace a certificate and its key, each at once; return ``proxy``."""
    replace(proxy.with_suffix(".key"), key_pem)
    replace(proxy.with_suffix(".crt"), certificate_pem)
    return proxy


def replace(path: Path, content: bytes) -> None:
    """Replace a file in one step, so that nobody reads a part of it."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_bytes(content)
    fresh.rename(path)


def _each(chain: ReplicaChain, script: str, *arguments: str) -> list[str]:
    command = [sys.executable, "-c", script, str(API_PORT), *arguments]
    return [chain.cluster.run(*command, address).strip() for address in chain.addresses()]
