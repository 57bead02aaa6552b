"""Logs: one JSON object per line on standard error, or columns for people on a terminal.

Modules take their logger from here instead of importing structlog, which would load rich.
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def _hidden(module: str) -> Iterator[None]:
    """Let imports of a module fail for a while."""
    present = sys.modules.get(module)
    sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]
        if present is not None:
            sys.modules[module] = present


# Where structlog finds rich it loads it for tracebacks that we do not use: 5 MB on every node.
with _hidden("rich"):
    import structlog

LEVELS = ("debug", "info", "warning", "error")


def logger(name: str) -> structlog.typing.FilteringBoundLogger:
    """Return the logger of a module; it may be taken before ``configure`` is called."""
    found: structlog.typing.FilteringBoundLogger = structlog.get_logger(name)
    return found


def configure(level: str = "info", *, json: bool | None = None) -> None:
    """Set up structlog and route the standard library's loggers through the same output.

    Args:
        level: least severe level that is written.
        json: force JSON lines or columns; by default JSON unless standard error is a terminal.

    Raises:
        ValueError: the level does not exist.
    """
    if level not in LEVELS:
        raise ValueError(f"{level!r} is not a valid log level; choose from {', '.join(LEVELS)}")
    terminal = sys.stderr.isatty()
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # Plain, since the default for terminals prints all local variables, secrets included.
    renderer: structlog.typing.Processor = structlog.dev.ConsoleRenderer(
        colors=terminal, exception_formatter=structlog.dev.plain_traceback
    )
    if json or (json is None and not terminal):
        shared.append(structlog.processors.format_exc_info)
        renderer = structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        # Loggers that exist follow when this is called again with another level.
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
