"""What the files of rules say: the rules, compiled elsewhere, and the backends that answer them.

Form: prometheus-adapter's, with a section ``backends``. The backend of a rule that names none is
the one of the settings, or else the only one there is. Only text is read here, no file.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

from adapter.sources.prometheus.backend import (
    LONGEST_TIMEOUT_SECONDS,
    TIMEOUT_SECONDS,
    BackendConfig,
    Verb,
)
from adapter.sources.prometheus.credentials import Access
from slicewatch.promrules.faults import Fault, FaultKind, RuleError, listed
from slicewatch.promrules.loading import RuleFile, load
from slicewatch.promrules.rule import CustomRule, ExternalRule
from slicewatch.promrules.sections import Document, Section
from slicewatch.service.documents import DocumentError
from slicewatch.suggestion import did_you_mean

DEFAULT: Final = "default"
"""Name of the backend that the settings describe."""
BACKENDS: Final = "backends"
OTHER_SECTIONS: Final = (BACKENDS, "workloadMetrics")
"""Keys of the file that are not about rules."""

R = TypeVar("R", CustomRule, ExternalRule)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """All that the files and the settings say. Equal ones come from equal texts.

    Attributes:
        texts: of the files, by their names.
        default: the backend of rules that name none; empty if there is none.
        custom, external: the rules that can be used, in order; of equal ones the later counts.
        faults: why the others cannot.
        documents: the files, for whoever reads their other sections.
    """

    texts: tuple[tuple[str, str], ...] = ()
    backends: Mapping[str, BackendConfig] = field(default_factory=dict, compare=False)
    default: str = field(default="", compare=False)
    custom: tuple[CustomRule, ...] = field(default=(), compare=False)
    external: tuple[ExternalRule, ...] = field(default=(), compare=False)
    faults: tuple[Fault, ...] = field(default=(), compare=False)
    documents: tuple[Document, ...] = field(default=(), compare=False)


def configuration(
    texts: Sequence[tuple[str, str]], settings_backend: BackendConfig | None = None
) -> Configuration:
    """Return what texts say.

    Args:
        texts: each file's name and content.
        settings_backend: the backend that the settings describe, if they do.

    Raises:
        DocumentError: a text is not YAML; says which, line and column.
    """
    faults: list[Fault] = []
    files = [_loaded(name, text) for name, text in texts]
    for file in files:
        faults += file.faults
    backends = {} if settings_backend is None else {settings_backend.name: settings_backend}
    for file in files:
        _add_backends(file, backends, faults)
    default = _default(backends, settings_backend)
    usable = _Usable(backends=backends, default=default, faults=faults)
    return Configuration(
        texts=tuple(texts),
        backends=backends,
        default=default,
        custom=usable.of(_named(files, lambda file: file.custom)),
        external=usable.of(_named(files, lambda file: file.external)),
        faults=tuple(faults),
        documents=tuple(file.document for file in files),
    )


def _loaded(name: str, text: str) -> RuleFile:
    try:
        return load(text, file=name, others=OTHER_SECTIONS)
    except DocumentError as error:
        raise DocumentError(f"{name}: {error}") from error


def _default(backends: Mapping[str, BackendConfig], given: BackendConfig | None) -> str:
    if given is not None:
        return given.name
    if DEFAULT in backends or len(backends) != 1:
        return DEFAULT if DEFAULT in backends else ""
    return next(iter(backends))


def _named(files: Sequence[RuleFile], of: Callable[[RuleFile], tuple[R, ...]]) -> Iterable[R]:
    """Yield the rules of all files; if there are several, rules are named after theirs."""
    for file in files:
        for rule in of(file):
            if len(files) == 1:
                yield rule
            else:
                path = f"{rule.place.file}:{rule.place.path}"
                yield replace(rule, place=replace(rule.place, path=path))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Usable:
    """Sorts out the rules whose backend is not there."""

    backends: Mapping[str, BackendConfig]
    default: str
    faults: list[Fault]

    def of(self, rules: Iterable[R]) -> tuple[R, ...]:
        return tuple(rule for rule in rules if self._has_backend(rule))

    def _has_backend(self, rule: CustomRule | ExternalRule) -> bool:
        name = rule.backend or self.default
        if name in self.backends:
            return True
        what = f"there is no backend {name}{did_you_mean(name, self.backends)}"
        fix = f"the backends are {listed(self.backends)}; describe it under backends"
        if not name:
            what = "the rule names no backend, and there is no default one"
            fix = "set prometheus_url, or name one of those under backends"
        self.faults.append(RuleError(FaultKind.BAD_VALUE, what, fix).at(rule.place))
        return False


def _add_backends(file: RuleFile, found: dict[str, BackendConfig], faults: list[Fault]) -> None:
    if not isinstance(file.document.value, dict):
        return
    top = Section(document=file.document, path=(), value=file.document.value, faults=faults)
    section = top.section(BACKENDS)
    for name, inner in section.inner():
        before = len(faults)
        if name in found:
            what = f"there is another backend {name}"
            inner.fault(RuleError(FaultKind.SAME_NAME, what, "give one of them another name"))
        made = _backend(name, inner)
        if made is not None and len(faults) == before:
            found[name] = made


def _backend(name: str, section: Section) -> BackendConfig | None:
    url = section.made("url", lambda: _url(section.text("url")))
    verb = section.made("method", lambda: _verb(section.text("method", str(Verb.POST))))
    timeout = section.made("timeout", lambda: _timeout(section.seconds("timeout")))
    headers = dict(_texts(section.section("headers")))
    access = _access(section)
    section.end()
    if url is None or verb is None or timeout is None:
        return None
    return BackendConfig(
        name=name, url=url, verb=verb, headers=headers, timeout_seconds=timeout, access=access
    )


def _access(section: Section) -> Access:
    token_file = section.text("bearerTokenFile")
    basic, tls = section.section("basicAuth"), section.section("tls")
    access = Access(
        token_file=token_file,
        username=basic.text("username"),
        password_file=basic.text("passwordFile"),
        ca_file=tls.text("caFile"),
        certificate_file=tls.text("certFile"),
        key_file=tls.text("keyFile"),
        server_name=tls.text("serverName"),
        verify=not tls.flag("insecureSkipVerify", False),
    )
    basic.end()
    tls.end()
    if token_file and access.username:
        _fault(section, "basicAuth", "there is a bearer token as well", "keep one of the two")
    if bool(access.username) != bool(access.password_file):
        _fault(section, "basicAuth", "one half is missing", "set username and passwordFile")
    if bool(access.certificate_file) != bool(access.key_file):
        _fault(section, "tls", "one half is missing", "set certFile and keyFile, or neither")
    return access


def _fault(section: Section, key: str, what: str, fix: str) -> None:
    section.fault(RuleError(FaultKind.BAD_VALUE, what, fix), key)


def _texts(section: Section) -> list[tuple[str, str]]:
    return [(str(key), section.text(str(key))) for key in section.value]


def _url(text: str) -> str:
    try:
        url, access = address(text)
    except ValueError as error:
        raise RuleError(
            FaultKind.BAD_VALUE, str(error), "write it like http://host:9090"
        ) from error
    if access.username:
        raise RuleError(
            FaultKind.BAD_VALUE, "the URL has a password in it", "use basicAuth with passwordFile"
        )
    return url


def address(text: str) -> tuple[str, Access]:
    """Return the base of an API without its user and password, and these.

    Raises:
        ValueError: it is no URL of an API; the message has no password in it.
    """
    try:
        parts = urlsplit(text.strip())
        valid = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError as error:
        raise ValueError("the URL cannot be read") from error
    if not valid or parts.query or parts.fragment:
        raise ValueError("the URL must be http:// or https://, a host, and perhaps a path")
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return bare.geturl().rstrip("/"), Access(username=user, password=password)


def _verb(text: str) -> Verb:
    if text.upper() not in set(Verb):
        raise RuleError(FaultKind.BAD_VALUE, f"{text!r} is no method", "write POST or GET")
    return Verb(text.upper())


def _timeout(seconds: float | None) -> float:
    if seconds is not None and seconds >= LONGEST_TIMEOUT_SECONDS:
        raise RuleError(
            FaultKind.BAD_VALUE,
            f"{seconds:g} s are too long, since other autoscalers wait meanwhile",
            f"use less than {LONGEST_TIMEOUT_SECONDS:g} s",
        )
    return TIMEOUT_SECONDS if seconds is None else seconds


def headers_of(given: Mapping[str, Any]) -> dict[str, str]:
    """Return headers of the settings.

    Raises:
        ValueError: one of them cannot be sent.
    """
    for name, value in given.items():
        if not name or not str(value).isprintable() or not name.replace("-", "").isalnum():
            raise ValueError(f"{name!r} is not a header with a value")
    return {name: str(value) for name, value in given.items()}
