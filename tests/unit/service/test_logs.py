"""Logs: one JSON object per line on standard error, whichever library logs."""

import json
import re
import subprocess
import sys
import textwrap

import pytest

from slicewatch.service import logs


def written(body, level="info", options=""):
    """Run ``body`` in its own interpreter: logging is set up once per process."""
    program = (
        "import logging, structlog\n"
        "from slicewatch.service import logs\n"
        f"logs.configure({level!r}{options})\n"
        "log = structlog.get_logger()\n" + textwrap.dedent(body)
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_an_event_is_one_json_line_with_time_level_and_fields():
    (line,) = written('log.info("tick", node="n1", took_seconds=0.25)')
    event = json.loads(line)
    assert event.pop("timestamp").endswith("Z")
    assert event == {"event": "tick", "level": "info", "node": "n1", "took_seconds": 0.25}


def test_line_breaks_and_quotes_do_not_break_the_line():
    (line,) = written(r'log.info("two\nlines", why="say \"no\"")')
    assert json.loads(line)["event"] == "two\nlines"
    assert json.loads(line)["why"] == 'say "no"'


def test_a_field_that_json_lacks_is_written_as_its_text():
    (line,) = written('log.info("made", of={1, 1}, by=b"x")')
    assert json.loads(line)["of"] == "{1}"


def test_an_exception_is_told_with_its_traceback_on_the_same_line():
    (line,) = written("""
        try:
            1 / 0
        except ZeroDivisionError:
            log.exception("failed")
    """)
    event = json.loads(line)
    assert event["level"] == "error"
    assert event["exception"].endswith("ZeroDivisionError: division by zero")


def test_other_libraries_come_out_the_same_way_with_their_loggers_name():
    first, second = written("""
        logging.getLogger("aiohttp.server").warning("slow %s", "client")
        try:
            1 / 0
        except ZeroDivisionError:
            logging.getLogger("other").exception("broke")
    """)
    event = json.loads(first)
    assert (event["event"], event["level"]) == ("slow client", "warning")
    assert event["logger"] == "aiohttp.server"
    assert "division by zero" in json.loads(second)["exception"]


@pytest.mark.parametrize(
    ("level", "expected"),
    [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)],
)
def test_less_severe_events_are_left_out(level, expected):
    body = """
        for speak in (log, logging.getLogger("other")):
            speak.debug("a"), speak.info("b"), speak.warning("c"), speak.error("d")
    """
    assert len(written(body, level)) == 2 * expected


def test_every_level_on_offer_works():
    for level in logs.LEVELS:
        assert len(written('log.error("here")', level)) == 1


def test_a_level_that_is_none_is_refused():
    with pytest.raises(
        ValueError, match="'loud' is not a valid log level; choose from debug, info"
    ):
        logs.configure("loud")


def test_people_can_have_columns_and_no_colour_codes_in_a_file():
    lines = written(
        """
        try:
            1 / 0
        except ZeroDivisionError:
            log.exception("failed", node="n1")
        """,
        options=", json=False",
    )
    assert "failed" in lines[0]
    assert "node=n1" in lines[0]
    assert "\x1b[" not in "\n".join(lines)
    assert lines[-1].endswith("division by zero")


def test_what_is_bound_to_the_context_is_in_every_line():
    (line,) = written("""
        structlog.contextvars.bind_contextvars(node="n2")
        log.info("tick")
    """)
    assert json.loads(line)["node"] == "n2"


def test_structlog_is_imported_here_and_nowhere_else(pytestconfig):
    """Whoever imports it first decides whether it finds rich."""
    root = pytestconfig.rootpath
    found = [
        str(path.relative_to(root))
        for package in ("slicewatch", "simulator", "exporter", "adapter")
        for path in (root / package).rglob("*.py")
        if re.search(
            r"^\s*(import|from) structlog", path.read_text(encoding="utf-8"), re.MULTILINE
        )
    ]
    assert found == ["slicewatch/service/logs.py"]
