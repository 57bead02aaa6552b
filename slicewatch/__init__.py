"""The vocabulary that the exporter, the adapter and the command line share."""

from importlib import metadata


def version() -> str:
    """Return the installed version, or ``0+checkout`` where only a source tree is there."""
    try:
        return metadata.version("slicewatch")
    except metadata.PackageNotFoundError:
        return "0+checkout"
