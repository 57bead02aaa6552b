"""A real Alertmanager with the example's routes, and a webhook that keeps what it is told."""

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import yaml

from testbed import debian

EXAMPLE: Final = Path(__file__).parents[2] / "alerts" / "alertmanager.yaml"


class Webhook:
    """Keeps every alert that it was told of.

    Attributes:
        told: the receiver, and the alert's labels.
    """

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, str]]] = []

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Serve on a free loopback port; yield its URL."""
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver = self.path.strip("/")
                hook.told += [
                    (receiver, alert["labels"])
                    for alert in json.loads(body)["alerts"]
                    if alert["status"] == "firing"
                ]
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing about each message."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


@contextmanager
def running(webhook: str, folder: Path) -> Iterator[str]:
    """Run an Alertmanager on loopback; yield its address.

    Raises:
        Unavailable: it is not installed and cannot be.
    """
    program = debian.program("prometheus-alertmanager", package="prometheus-alertmanager")
    config = folder / "alertmanager.yaml"
    config.write_text(yaml.safe_dump(_hurried(yaml.safe_load(EXAMPLE.read_text()), webhook)))
    address = f"127.0.0.1:{_free_port()}"
    with (folder / "alertmanager.log").open("wb") as log:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={config}",
                f"--storage.path={folder / 'alertmanager'}",
                f"--web.listen-address={address}",
                "--cluster.listen-address=",
            ],
            stderr=log,
            stdout=log,
        )
        try:
            yield address
        finally:
            process.kill()
            process.wait()


def _hurried(example: dict[str, Any], webhook: str) -> dict[str, Any]:
    """Return the example with the webhook for its placeholders, and without its waits."""
    for route in (example["route"], *example["route"]["routes"]):
        route |= {"group_wait": "1s", "group_interval": "1s"}
    for receiver in example["receivers"]:
        receiver["webhook_configs"] = [{"url": f"{webhook}/{receiver['name']}"}]
    return example


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
