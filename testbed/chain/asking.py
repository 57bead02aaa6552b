"""Asks the API server for one path ten times a second and writes each answer down.

A program of its own, since the test has no network on the node. It ends with SIGTERM, after the
request that is under way. It begins with many requests at once, after which kube-apiserver has
open connections to all replicas, as it has where there are many autoscalers.
"""

import argparse
import http.client
import json
import signal
import ssl
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

EVERY_SECONDS: Final = 0.1
MOST_SECONDS: Final = 300.0
_TIMEOUT_SECONDS: Final = 20.0
_AT_ONCE: Final = 8
_ROUNDS: Final = 10


def main() -> None:
    """Print one JSON object per request: when, ``status`` (0: no answer), and what was said."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("server", "ca", "certificate", "key", "path"):
        parser.add_argument(f"--{name}", required=True)
    wanted = parser.parse_args()
    context = ssl.create_default_context(cafile=wanted.ca)
    context.load_cert_chain(wanted.certificate, wanted.key)
    address = urlsplit(wanted.server).netloc

    def connected() -> http.client.HTTPSConnection:
        made = http.client.HTTPSConnection(address, context=context, timeout=_TIMEOUT_SECONDS)
        made.connect()
        return made

    _spread(connected, wanted.path)
    connection, end = connected(), time.monotonic() + MOST_SECONDS
    while not ended.is_set() and time.monotonic() < end:
        begun = time.monotonic()
        print(json.dumps({"at": time.time(), **asked(connection, wanted.path)}), flush=True)
        ended.wait(max(0.0, EVERY_SECONDS - (time.monotonic() - begun)))


def asked(connection: http.client.HTTPSConnection, path: str) -> dict[str, Any]:
    """Return status and, where it is not 200, the text of one answer."""
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        return {"status": 0, "said": repr(error)}
    return {"status": answer.status, "said": "" if answer.status == HTTPStatus.OK else text}


def _spread(connected: Callable[[], http.client.HTTPSConnection], path: str) -> None:
    barrier = threading.Barrier(_AT_ONCE, timeout=_TIMEOUT_SECONDS)

    def ask() -> None:
        connection = connected()
        for _ in range(_ROUNDS):
            barrier.wait()
            asked(connection, path)
        connection.close()

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(_AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=_TIMEOUT_SECONDS * _ROUNDS)


if __name__ == "__main__":
    main()
