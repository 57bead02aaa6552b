"""The vocabulary shared by the exporter, the adapter and the command line."""

from importlib import metadata


def version() -> str:
    """Return the installed version, or ``0+checkout`` where there is only a source tree."""
    try:
        return metadata.version("slicewatch")
    except metadata.PackageNotFoundError:
        return "0+checkout"
