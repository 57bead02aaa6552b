"""``slicewatch health evidence``: asks this node's exporter and writes one archive for a vendor."""

import io
import os
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cli.health.dossier import Dossier
from health import source
from health.source import Cursor
from slicewatch.service.logs import logger

MODE: Final = 0o640
# A record of the kernel's log has at most 1 KiB of text and its dictionary; see dmesg(1).
LONGEST_RECORD_BYTES: Final = 8192
# A ring buffer has at most a few ten thousand records, and a few megabytes.
MOST_RECORDS: Final = 200_000
MOST_LOG_BYTES: Final = 64 << 20

log = logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to archive, and where."""

    socket: str
    output: Path
    gpu: str = ""
    kernel_log: str = "/dev/kmsg"


async def run(wanted: Wanted) -> None:
    """Write the archive, and print where it is.

    Raises:
        SilenceError: the exporter gives no evidence.
        NoSuchGpuError: it has no such GPU.
        OSError: the archive cannot be written.
    """
    from health.checks.index import CHECKS

    async with source.exporter_socket(wanted.socket) as exporter:
        evidence = await exporter.ask(Cursor())
    lines, fault = kernel_records(Path(wanted.kernel_log))
    dossier = Dossier.of(
        evidence, gpu=wanted.gpu, checks=CHECKS, kernel_lines=lines, kernel_fault=fault,
        taken=datetime.now(UTC),
    )  # fmt: skip
    write(dossier.files(), wanted.output, dossier.taken)
    print(dossier.summary() + f"\nwrote {wanted.output}")


def write(files: Mapping[str, bytes], path: Path, taken: datetime) -> None:
    """Write files as a gzipped tar archive, in one folder named after it; all of it or nothing.

    Raises:
        OSError: the folder is missing or may not be written to.
    """
    unfinished = path.with_name(path.name + ".part")
    folder = path.name.removesuffix(".gz").removesuffix(".tar").removesuffix(".tgz")
    with tarfile.open(unfinished, "w:gz") as archive:
        for name, body in files.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size, member.mode = len(body), MODE
            member.mtime = int(taken.timestamp())
            archive.addfile(member, io.BytesIO(body))
    unfinished.chmod(MODE)
    unfinished.replace(path)


def kernel_records(path: Path) -> tuple[Sequence[str], str]:
    """Return the lines of the kernel's log and, if they are not all there, why.

    Args:
        path: ``/dev/kmsg``, or a file with what ``dmesg`` printed.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        return (), f"{path} cannot be read: {error.strerror}"
    try:
        return _records(descriptor)
    except OSError as error:
        return (), f"{path} cannot be read: {error.strerror}"
    finally:
        os.close(descriptor)


def _records(descriptor: int) -> tuple[list[str], str]:
    text, fault = bytearray(), ""
    for _ in range(MOST_RECORDS):
        try:
            part = os.read(descriptor, LONGEST_RECORD_BYTES)
        except BlockingIOError:  # all that there is now
            break
        except BrokenPipeError:  # what came next was overwritten while we read
            fault = "some of it was overwritten while it was read"
            continue
        text += part
        if not part:
            break
        if len(text) > MOST_LOG_BYTES:
            fault = f"longer than {MOST_LOG_BYTES} bytes, of which only the first were read"
            break
    lines = text.decode(errors="replace").split("\n")
    return lines if lines[-1] else lines[:-1], fault
