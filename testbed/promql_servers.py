"""Real servers that speak PromQL: Prometheus, old and new, and VictoriaMetrics.

Each scrapes one page of this process every second, so that its samples are what scraping makes of
them: with real times, and with the marks of series that end.
"""

import re
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final, Literal

from testbed import debian
from testbed.binaries import Unavailable, binary

DEADLINE_SECONDS: Final = 40.0
_POLL_SECONDS: Final = 0.1

Name = Literal["prometheus-2", "prometheus-3", "victoria-metrics"]
NAMES: Final[tuple[Name, ...]] = ("prometheus-2", "prometheus-3", "victoria-metrics")

SCRAPE: Final = """
scrape_configs:
- job_name: page
  scrape_interval: 1s
  scrape_timeout: 1s
  honor_labels: true
  honor_timestamps: true
  static_configs: [{{targets: ['{target}']}}]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromqlServer:
    """A server that scrapes a page. ``url`` is of its API, without ``/api/v1``."""

    name: Name
    url: str

    def wait_for(self, query: str) -> None:
        """Wait until an instant query has a result."""
        ask = f"{self.url}/api/v1/query?query={query}"
        _until(lambda: b'"value"' in _read(ask), f"{self.name} has no {query}")


class Page:
    """What is scraped. ``text`` may be replaced at any time."""

    def __init__(self, text: str) -> None:
        self.text = text

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Serve on a free loopback port; yield the address."""
        page = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = page.text.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing about each scrape."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


@contextmanager
def running(name: Name, target: str, folder: Path) -> Iterator[PromqlServer]:
    """Run a server that scrapes an address.

    Raises:
        Unavailable: it is not installed and cannot be built.
    """
    with configured(name, SCRAPE.format(target=target), folder) as server:
        yield server


@contextmanager
def configured(
    name: Name, configuration: str, folder: Path, *flags: str
) -> Iterator[PromqlServer]:
    """Run a server with a configuration of scrapes, and more flags of its own.

    Raises:
        Unavailable: it is not installed and cannot be built.
    """
    config = folder / "scrape.yml"
    config.write_text(configuration)
    port = _free_port()
    with (folder / "log").open("wb") as log:
        command = [*_command(name, config, folder / "data", port), *flags]
        process = subprocess.Popen(command, stderr=log)
        try:
            url = f"http://127.0.0.1:{port}/prefix"
            alive = f"{url}/api/v1/query?query=1"
            _until(lambda: bool(_read(alive)), f"{name} does not answer, see {folder / 'log'}")
            yield PromqlServer(name=name, url=url)
        finally:
            process.kill()
            process.wait()


def _command(name: Name, config: Path, data: Path, port: int) -> list[str]:
    if name == "victoria-metrics":
        return [
            str(binary(name)),
            f"-promscrape.config={config}",
            f"-storageDataPath={data}",
            f"-httpListenAddr=127.0.0.1:{port}",
            "-http.pathPrefix=/prefix",
            # By default it hides what is younger than half a minute.
            "-search.latencyOffset=1s",
        ]
    program = binary("prometheus") if name == "prometheus-3" else _debians()
    return [
        str(program),
        f"--config.file={config}",
        f"--storage.tsdb.path={data}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--web.external-url=http://127.0.0.1/prefix",
        "--log.level=error",
    ]


def _debians() -> Path:
    found = debian.program("prometheus", package="prometheus")
    done = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
    if not re.search(r"version 2\.", done.stdout + done.stderr):
        raise Unavailable(f"{found} is not of version 2")
    return Path(found)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def _read(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - a loopback address
            body: bytes = answer.read()
            return body
    except (urllib.error.URLError, OSError):
        return b""


def _until(condition: Callable[[], bool], fault: str) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(fault)
        threading.Event().wait(_POLL_SECONDS)
