"""Logs: one JSON object a line on standard error, or columns for people on a terminal."""

import logging
import sys

import structlog

LEVELS = ("debug", "info", "warning", "error")


def configure(level: str = "info", *, json: bool | None = None) -> None:
    """Set up structlog and route the standard library's loggers through the same output.

    Args:
        level: least severe level that is written.
        json: force JSON lines or columns; by default JSON unless standard error is a terminal.

    Raises:
        ValueError: there is no such level.
    """
    if level not in LEVELS:
        raise ValueError(f"{level!r} is no log level; choose from {', '.join(LEVELS)}")
    terminal = sys.stderr.isatty()
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # Plain, since the default for terminals prints every local variable, secrets included.
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
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
