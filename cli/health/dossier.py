"""What a vendor needs to judge a GPU that failed, as the files of one archive. Pure.

Who used the GPU is not among it: names of pods and namespaces are no vendor's business.
"""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from health.case import Case, Poll, Thresholds
from health.checks.model import Check, Subject, Unhealthy
from health.engine import judgement
from slicewatch import version as installed_version
from slicewatch.wire import evidence as wire
from slicewatch.wire.evidence import Event, Evidence, Gpu

# What the kernel writes about GPUs contains one of these.
DRIVER_WORDS: Final = ("NVRM", "nvidia", "NVSwitch", "SXid")


class NoSuchGpuError(LookupError):
    """The node has no GPU by that uuid, index or bus id; the message lists those that it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check finds in this one moment; faults that need time are found sooner than raised."""

    check: str
    reason: str
    gpu: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dossier:
    """A moment of a node, or of one of its GPUs.

    Attributes:
        gpus: those that it is about.
        events: theirs, and those of no known GPU.
        kernel_lines: what the kernel's log says of GPUs, the oldest first.
        kernel_fault: why there are none, or fewer than there were; empty otherwise.
    """

    evidence: Evidence
    gpus: tuple[Gpu, ...]
    events: tuple[Event, ...]
    findings: tuple[Finding, ...]
    kernel_lines: tuple[str, ...]
    kernel_fault: str
    taken: datetime

    @classmethod
    def of(
        cls,
        evidence: Evidence,
        *,
        gpu: str = "",
        checks: Sequence[Check] = (),
        kernel_lines: Sequence[str] = (),
        kernel_fault: str = "",
        taken: datetime,
    ) -> "Dossier":
        """Return the dossier of a GPU, or of all.

        Args:
            evidence: as the exporter gave it.
            gpu: uuid, index or PCI bus id; empty for all.
            checks: what to look for.
            kernel_lines: all lines of the kernel's log.
            kernel_fault: why they are missing.
            taken: when the evidence was.

        Raises:
            NoSuchGpuError: there is no such GPU.
        """
        bare = without_holders(evidence)
        gpus = _chosen(bare, gpu)
        known = {one.device.uuid for one in bare.gpus}
        ours = {one.device.uuid for one in gpus}
        return cls(
            evidence=msgspec.structs.replace(bare, gpus=gpus),
            gpus=gpus,
            events=tuple(e for e in bare.events if e.gpu in ours or e.gpu not in known),
            findings=tuple(_findings(bare, gpus, checks)),
            kernel_lines=tuple(line for line in kernel_lines if _of_driver(line)),
            kernel_fault=kernel_fault,
            taken=taken.astimezone(UTC),
        )

    def files(self) -> Mapping[str, bytes]:
        """Return the files by name."""
        files = {
            "summary.txt": self.summary().encode(),
            "evidence.json": _json(msgspec.structs.replace(self.evidence, events=self.events)),
            "findings.json": _json(self.findings),
            "events.json": _json([self._dated(event) for event in self.events]),
            "versions.json": _json(self.versions()),
        }
        for gpu in self.gpus:
            name = f"gpu-{gpu.device.gpu}.json"
            if name in files:  # one that is gone, and one that has its index now
                name = f"gpu-{gpu.device.gpu}-{gpu.device.uuid}.json"
            files[name] = _json(_gpu_tree(gpu))
        if self.kernel_lines:
            files["kernel.log"] = ("\n".join(self.kernel_lines) + "\n").encode()
        return files

    def versions(self) -> Mapping[str, str]:
        """Return the versions of everything that has one here."""
        driver = self.evidence.driver
        return {
            "driver": driver.version, "nvml": driver.nvml, "cuda": driver.cuda,
            "kernel": platform.release(), "slicewatch": installed_version(),
        }  # fmt: skip

    def summary(self) -> str:
        """Return the dossier on a page, for people."""
        said = self.evidence
        lines = [
            f"Node {said.node}, {self.taken:%Y-%m-%d %H:%M:%S} UTC, up {said.uptime_seconds:.0f} s",
            "  ".join(f"{name} {text or '?'}" for name, text in self.versions().items()),
        ]
        if said.driver.down:
            lines.append(f"NVML is not started: {said.driver.down}, {said.driver.seconds:.0f} s")
        for gpu in self.gpus:
            lines += ["", *_gpu_lines(gpu)]
            lines += [f"  finding: {f.message} ({f.reason})" for f in self._findings_of(gpu)]
        lines += ["", *(f"Node: {f.message} ({f.reason})" for f in self.findings if not f.gpu)]
        if not self.findings:
            lines.append("Findings: none")
        lines += [f"Events: {len(self.events)}; {said.missed} no longer kept"]
        lines += [f"  {self._event_line(event)}" for event in self.events]
        lines.append(
            f"Kernel log: {self.kernel_fault}"
            if self.kernel_fault
            else f"Kernel log: {len(self.kernel_lines)} lines about GPUs"
        )
        return "\n".join(lines) + "\n"

    def _findings_of(self, gpu: Gpu) -> list[Finding]:
        return [finding for finding in self.findings if finding.gpu == gpu.device.uuid]

    def _event_line(self, event: Event) -> str:
        where = event.gpu or event.pci_bus_id or "no GPU"
        return f"{self._at(event)} {event.kind} {event.data} {where} {event.text}".rstrip()

    def _dated(self, event: Event) -> dict[str, Any]:
        tree: dict[str, Any] = msgspec.to_builtins(event)
        return {"at": self._at(event)} | tree

    def _at(self, event: Event) -> str:
        try:
            at = datetime.fromtimestamp(self.taken.timestamp() - event.age_seconds, UTC)
        except (ValueError, OverflowError, OSError):
            return f"an impossible time, {event.age_seconds:g} s ago"
        return at.isoformat(timespec="seconds")


def without_holders(evidence: Evidence) -> Evidence:
    """Return evidence without the names of who uses the GPUs."""
    gpus = tuple(msgspec.structs.replace(gpu, holders=()) for gpu in evidence.gpus)
    return msgspec.structs.replace(evidence, gpus=gpus)


def _chosen(evidence: Evidence, wanted: str) -> tuple[Gpu, ...]:
    if not wanted:
        return evidence.gpus
    found = tuple(
        gpu
        for gpu in evidence.gpus
        if wanted.lower()
        in {gpu.device.uuid.lower(), str(gpu.device.gpu), gpu.device.pci_bus_id.lower()}
    )
    if not found:
        known = ", ".join(f"{gpu.device.gpu} ({gpu.device.uuid})" for gpu in evidence.gpus)
        raise NoSuchGpuError(f"node {evidence.node} has no GPU {wanted}; it has {known or 'none'}")
    return found


def _findings(evidence: Evidence, gpus: Sequence[Gpu], checks: Sequence[Check]) -> list[Finding]:
    found = []
    for check in checks:
        for gpu in gpus if check.subject is Subject.GPU else (None,):
            uuid = "" if gpu is None else gpu.device.uuid
            events = tuple(event for event in evidence.events if event.gpu == uuid)
            poll = Poll(at=0.0, evidence=evidence, gpu=gpu, events=events)
            judged = judgement(check, Case(polls=(poll,), thresholds=Thresholds()))
            if isinstance(judged, Unhealthy):
                found.append(
                    Finding(
                        check=check.id,
                        reason=judged.reason or check.reason,
                        gpu=uuid,
                        message=judged.message,
                    )
                )
    return found


def _of_driver(line: str) -> bool:
    return any(word in line for word in DRIVER_WORDS)


def _gpu_lines(gpu: Gpu) -> list[str]:
    device = gpu.device
    lines = [
        f"GPU {device.gpu}: {device.model}",
        f"  uuid {device.uuid}  bus {device.pci_bus_id or '?'}",
        f"  serial {device.serial or '?'}  board {device.board or '?'}  VBIOS {device.vbios or '?'}",
    ]
    if gpu.silent:
        lines.append(f"  does not answer: {gpu.silent}, for {gpu.silent_seconds:.0f} s")
    if gpu.call:
        lines.append(f"  in the call {gpu.call} for {gpu.call_seconds:.0f} s")
    return lines


def _gpu_tree(gpu: Gpu) -> dict[str, Any]:
    # Through JSON, since readings are held as the JSON that they came in.
    tree: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(gpu))
    return tree


def _json(value: object) -> bytes:
    return msgspec.json.format(wire_json(value), indent=2) + b"\n"


def wire_json(value: object) -> bytes:
    """Return JSON as the exporter writes it, for evidence; plain JSON for all else."""
    return wire.encode(value) if isinstance(value, Evidence) else msgspec.json.encode(value)
