"""Issues our own serving certificate from the authorities that all replicas share in a Secret.

The first replica creates the Secret, or fills an empty one that a chart has made; the others read
it. Whoever finds that a new authority is due adds it; of two at once, one is told of a conflict
and reads again. A Secret that holds something else is never overwritten.

Needs, in the adapter's own namespace: ``get`` and ``patch`` of the Secret by its name, and
``create`` of secrets, which Kubernetes cannot limit to a name, unless the Secret is there already.
"""

import base64
import datetime
from collections.abc import Callable, Sequence
from typing import Final

from adapter.api.certificate import ServingCertificate
from adapter.authority import Authorities, AuthorityError
from slicewatch.kube.errors import ConflictError, NotFoundError, UnavailableError
from slicewatch.kube.objects import SECRET, Secret, ServiceReference
from slicewatch.kube.protocol import Kube
from slicewatch.service import certificates, logs

log = logs.logger(__name__)

LIFETIME: Final = datetime.timedelta(days=14)
RENEW_BEFORE_END: Final = LIFETIME / 3
ATTEMPTS: Final = 5


def names_of(service: ServiceReference) -> tuple[str, ...]:
    """Return the names by which a Service is called; kube-apiserver verifies the first."""
    name = f"{service.name}.{service.namespace}"
    return f"{name}.svc", name, service.name


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


class Issuance:
    """Keeps a serving certificate issued, in files.

    Args:
        kube: where the Secret is.
        secret: its name.
        namespace: its namespace, our own.
        names: DNS names and addresses that the certificate is for.
        place: the files; whatever is in them is replaced.
        replaced: told after they have been.
        now: the time, with its zone.
    """

    def __init__(
        self,
        kube: Kube,
        *,
        secret: str,
        namespace: str,
        names: Sequence[str],
        place: ServingCertificate,
        replaced: Callable[[], None],
        now: Callable[[], datetime.datetime] = _now,
    ) -> None:
        self._kube = kube
        self._secret = secret
        self._namespace = namespace
        self._names = tuple(names)
        self._place = place
        self._replaced = replaced
        self._now = now
        self._signer = b""
        self._renew_at = datetime.datetime.min.replace(tzinfo=datetime.UTC)

    async def bundle(self) -> bytes:
        """Issue a certificate if one is due; return the authorities to be trusted, as PEM.

        Raises:
            KubeError: the Secret can be neither read nor written.
            AuthorityError: it holds something else.
            CertificateError: the files cannot be written.
        """
        now = self._now()
        authorities = await self._shared(now)
        self._issue(authorities, now)
        return authorities.bundle(now)

    async def _shared(self, now: datetime.datetime) -> Authorities:
        for _ in range(ATTEMPTS):
            try:
                found = await self._kube.get(SECRET, self._secret, self._namespace)
            except NotFoundError:
                found = None
            known = self._read(found)
            if not known.due(now):
                return known
            try:
                return await self._keep(known.renewed(now), found)
            except ConflictError:
                continue  # Another replica was faster.
        raise UnavailableError(
            f"secret {self._namespace}/{self._secret} changed {ATTEMPTS} times while it was written"
        )

    def _read(self, found: Secret | None) -> Authorities:
        if found is None:
            return Authorities()
        try:
            return Authorities.read(found.data)
        except AuthorityError as error:
            raise AuthorityError(
                f"secret {self._namespace}/{self._secret}: {error}; delete it to have new ones made"
            ) from error

    async def _keep(self, authorities: Authorities, old: Secret | None) -> Authorities:
        data = {key: base64.b64encode(pem).decode() for key, pem in authorities.data().items()}
        if old is None:
            made = {"metadata": {"name": self._secret}, "type": "Opaque", "data": data}
            await self._kube.create(SECRET, made, self._namespace)
        else:
            version = {"resourceVersion": old.metadata.resource_version}
            patch = {"metadata": version, "data": data}
            await self._kube.patch(SECRET, self._secret, patch, namespace=self._namespace)
        log.info("new authority", secret=self._secret, trusted=len(authorities.known))
        return authorities

    def _issue(self, authorities: Authorities, now: datetime.datetime) -> None:
        signer = authorities.signer(now)
        if signer.certificate_pem == self._signer and now < self._renew_at:
            return
        end = min(now + LIFETIME, signer.certificate.not_valid_after_utc)
        made = certificates.issue(
            self._names[0],
            issuer=signer,
            server_names=self._names,
            lifetime=end - now,
            at=now,
        )
        self._place.write(made.certificate_pem, made.key_pem)
        self._signer, self._renew_at = signer.certificate_pem, end - RENEW_BEFORE_END
        log.info("serving certificate issued", names=self._names, until=end.isoformat())
        self._replaced()
