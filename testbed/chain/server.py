"""The inference server of a pool, as far as an autoscaler can tell: a page with its latencies.

Runs in a container by nothing but an interpreter and this file. What happens to a request is told
from outside, by a file that names the present rate and latency; the counters are its own.
"""

import argparse
import json
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

PORT: Final = 8000
PATH: Final = "/metrics"
_STEP_SECONDS: Final = 0.1


@dataclass(slots=True)
class Served:
    """What has been served so far; requests come as evenly as the file says."""

    requests: float = 0.0
    latency_ms: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, requests: float, latency_seconds: float) -> None:
        """Count requests of one latency."""
        with self._lock:
            self.requests += requests
            self.latency_ms += requests * latency_seconds * 1000

    def page(self) -> bytes:
        """Return the counters in the format that Prometheus reads."""
        with self._lock:
            return (
                "# TYPE request_latency_ms summary\n"
                f"request_latency_ms_sum {self.latency_ms:.3f}\n"
                f"request_latency_ms_count {self.requests:.3f}\n"
            ).encode()


def _follow(traffic: Path, served: Served) -> None:
    rhythm, then = threading.Event(), time.monotonic()
    while not rhythm.wait(_STEP_SECONDS):
        now = time.monotonic()
        told = json.loads(traffic.read_text())
        served.add(told["requests_per_second"] * (now - then), told["latency_seconds"])
        then = now


def _handler(served: Served) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = served.page() if self.path == PATH else None
            self.send_response(404 if page is None else 200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(page or b"")))
            self.end_headers()
            self.wfile.write(page or b"")

        def log_message(self, *_: object) -> None:
            """Say nothing of requests."""

    return Handler


def main() -> None:
    """Serve until SIGTERM, which the first process of a container has to ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traffic", type=Path, help="the file, replaced as a whole")
    parser.add_argument("mark", nargs="*", help="told to who looks at this process")
    wanted = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    served = Served()
    threading.Thread(target=_follow, args=(wanted.traffic, served), daemon=True).start()
    ThreadingHTTPServer(("", PORT), _handler(served)).serve_forever()


if __name__ == "__main__":
    main()
