"""What the API server itself says that the monitors asked of it: its audit log."""

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Self

from testbed.health import shipped

NODE_CLAIM: Final = "authentication.kubernetes.io/node-name"
_USER_AGENT: Final = '"userAgent":"slicewatch"'
_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [shipped.USER]}, {"level": "None"}],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request of a monitor.

    Attributes:
        monitor: the node that its token names.
        at: seconds since 1970.
        what: such as ``patch nodes/status played-1``.
        status: of the answer.
    """

    monitor: str
    at: float
    what: str
    status: int

    @property
    def writes(self) -> bool:
        """Tell whether it was to change something."""
        return not self.what.startswith("get ")

    @classmethod
    def of(cls, line: str) -> Self:
        """Return the request of one line."""
        entry = json.loads(line)
        about = entry["objectRef"]
        resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
        time = datetime.fromisoformat(entry["requestReceivedTimestamp"])
        return cls(
            monitor="".join(entry["user"].get("extra", {}).get(NODE_CLAIM, ())),
            at=time.timestamp(),
            what=f"{entry['verb']} {resource} {about.get('name', '')}".rstrip(),
            status=entry["responseStatus"]["code"],
        )


class AuditLog:
    """The log of one API server, as far as monitors are concerned.

    Args:
        folder: for its files.
    """

    def __init__(self, folder: Path) -> None:
        self._policy = folder / "audit-policy.json"
        self._log = folder / "audit.log"
        self._policy.write_text(json.dumps(_POLICY))

    @property
    def flags(self) -> list[str]:
        """The flags with which the API server writes it."""
        return [f"--audit-policy-file={self._policy}", f"--audit-log-path={self._log}"]

    def requests(self, monitor: str = "") -> list[Request]:
        """Return the requests of one monitor or of all, in the order of their answers."""
        if not self._log.exists():
            return []
        lines = self._log.read_text(encoding="utf-8").split("\n")[:-1]
        # Whoever else shows a monitor's token is a test.
        found = [Request.of(line) for line in lines if _USER_AGENT in line]
        return [one for one in found if monitor in {"", one.monitor}]
