"""Reads the files, asks the backend if there is one, and writes the report."""

import dataclasses
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

from adapter.sources.prometheus.fault import BackendError
from advisor.rules.check import Report
from advisor.rules.checks import report
from advisor.rules.files import subject_of
from cli.lint.backend import asked_now, backend_of
from cli.lint.output import write_json, write_table
from slicewatch.service import tasks
from slicewatch.service.settings import duration

FAILED: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to check and how to say it.

    Attributes:
        files: paths; ``-`` is the standard input.
        prometheus: URL of a backend to ask; empty: none.
        scrape_interval: such as ``30s``; empty: unknown.
        as_json: JSON instead of a table.
        verbose: name each check that could not be made.
    """

    files: Sequence[str]
    prometheus: str = ""
    token_file: str = ""
    ca_file: str = ""
    scrape_interval: str = ""
    as_json: bool = False
    verbose: bool = False


def run_lint(options: Options, stream: TextIO) -> int:
    """Check the files; return 0, 1 if there are errors, 2 if they could not be checked."""
    try:
        found = _report(options)
    except (OSError, ValueError, BackendError) as error:
        return tasks.refuse("slicewatch lint", [error])
    if options.as_json:
        write_json(found, stream)
    else:
        write_table(found, stream, verbose=options.verbose)
    return FAILED if found.failed else 0


def _report(options: Options) -> Report:
    interval = duration(options.scrape_interval) if options.scrape_interval else None
    backend = None
    if options.prometheus:
        backend = backend_of(options.prometheus, options.token_file, options.ca_file)
    read = subject_of((path, _text(path)) for path in options.files)
    subject = dataclasses.replace(read, scrape_interval_seconds=interval)
    if backend is not None:
        subject = asked_now(subject, backend, time.time())
    return report(subject, asked_backend=backend is not None)


def _text(path: str) -> str:
    return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
