"""One section of the web configuration at a time, with all faults collected on the way."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from slicewatch.service.documents import MOST_CHARACTERS
from slicewatch.suggestion import choices

S = TypeVar("S", bound=msgspec.Struct)


class Reading:
    """One reading of one file. Every method notes faults instead of raising them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.faults: list[str] = []

    def section(self, name: str, content: object, kind: type[S]) -> S:
        """Return a section, or its defaults where it is empty or faulty."""
        if content in ("", None):
            return kind()
        if not isinstance(content, dict):
            self.faults.append(f"{name}: must map keys to values")
            return kind()
        # An empty value is one that was not given.
        given = {key: value for key, value in content.items() if value != ""}
        known = kind.__struct_fields__
        self.unknown(name, given, known)
        try:
            return msgspec.convert(
                {key: value for key, value in given.items() if key in known}, kind, strict=False
            )
        except (msgspec.ValidationError, UnicodeError) as error:
            self.faults.append(f"{name}: {str(error).replace('$.', '')}")
            return kind()

    def unknown(self, where: str, given: Mapping[Any, object], known: tuple[str, ...]) -> None:
        """Note the keys that are not known."""
        for key in given:
            if key not in known:
                hint = choices(str(key), known)
                self.faults.append(f"{where}: unknown key {key!r}{hint}")

    def chosen(self, key: str, value: str, known: Mapping[str, object]) -> bool:
        """Tell whether a value is one of those known."""
        if value not in known:
            self.faults.append(f"{key}: {value!r} is none of {', '.join(known)}")
        return value in known

    def pem(self, key: str, inline: str, file: str, *, needed: str = "") -> bytes:
        """Return the PEM that is given inline or as a file; ``needed`` says for what."""
        if inline and file:
            self.faults.append(f"{key}: given both here and as {key}_file; remove one")
        elif not inline and not file and needed:
            self.faults.append(f"{key}: missing; {needed} needs {key}_file or {key}")
        if not file:
            return inline.encode(errors="replace")
        try:
            with (self.folder / file).open("rb") as opened:
                return opened.read(MOST_CHARACTERS)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            self.faults.append(f"{key}_file: {self.folder / file} cannot be read: {reason}")
            return b""
