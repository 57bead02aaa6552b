"""Certificates of a test cluster: two authorities and whatever is signed by them.

Lifetimes are days, because no cluster of ours lives longer.
"""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import serialization

from slicewatch.service import certificates

CLUSTER_AUTHORITY: Final = "ca"
FRONT_PROXY_AUTHORITY: Final = "front-proxy-ca"
_LIFETIME: Final = datetime.timedelta(days=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The files of a certificate, its key and the authority that signed it, all PEM."""

    certificate: Path
    key: Path
    authority: Path


class Pki:
    """The certificates of one cluster, as files in one folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._authorities = {
            name: certificates.issue(name, authority=True, lifetime=_LIFETIME)
            for name in (CLUSTER_AUTHORITY, FRONT_PROXY_AUTHORITY)
        }
        for name, made in self._authorities.items():
            self._write(f"{name}.crt", made.certificate_pem)
        accounts = certificates.issue("service-accounts", lifetime=_LIFETIME)
        self.service_account_key = self._write("service-accounts.key", accounts.key_pem)
        public = accounts.key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self.service_account_public_key = self._write("service-accounts.pub", public)

    @property
    def ca(self) -> Path:
        """The authority that signs the API server, kubelets and users."""
        return self.folder / f"{CLUSTER_AUTHORITY}.crt"

    @property
    def front_proxy_ca(self) -> Path:
        """The authority that signs the API server as client of aggregated APIs."""
        return self.folder / f"{FRONT_PROXY_AUTHORITY}.crt"

    def issue(
        self,
        name: str,
        *,
        ca: str = CLUSTER_AUTHORITY,
        common_name: str | None = None,
        organizations: Sequence[str] = (),
        sans: Sequence[str] = (),
        client: bool = True,
    ) -> Certificate:
        """Sign a certificate for ``name``.

        Args:
            name: names the files, and the subject if ``common_name`` does not.
            ca: ``ca`` or ``front-proxy-ca``.
            common_name: Kubernetes' user name of a client.
            organizations: Kubernetes' groups of a client.
            sans: DNS names and addresses of a server; without any it is not for servers.
            client: whether it may be used by a client.
        """
        issued = certificates.issue(
            common_name or name,
            issuer=self._authorities[ca],
            organizations=organizations,
            server_names=sans,
            client=client,
            lifetime=_LIFETIME,
        )
        return Certificate(
            certificate=self._write(f"{name}.crt", issued.certificate_pem),
            key=self._write(f"{name}.key", issued.key_pem),
            authority=self.folder / f"{ca}.crt",
        )

    def _write(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_bytes(content)
        return path
