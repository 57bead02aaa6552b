"""Processes that scrape and are scraped: exporters of simulated nodes, Prometheus, a kubelet."""

import asyncio
import json
import re
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue

from prometheus_client.parser import text_string_to_metric_families

from exporter.tenants.fake import FakeKubelet
from testbed.binaries import Unavailable, binary
from testbed.require import skip_or_fail

ROOT = Path(__file__).parents[2]
DEADLINE_SECONDS = 40.0
QUICK = ("--tick-seconds", "0.2", "--window-seconds", "1", "--stale-seconds", "2")


class Process:
    """A process that tells in its log at which address it serves."""

    def __init__(self, command, announced):
        self.process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        self.log = []
        self._lines = Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.address = self.wait_for(announced)[1]

    def wait_for(self, pattern):
        """Return the match of a pattern in the next line that has one."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                self.log.append(self._lines.get(timeout=0.1))
            except Empty:
                continue
            if found := re.search(pattern, self.log[-1]):
                return found
        self.end()
        raise AssertionError(f"no line has {pattern!r}:\n" + "".join(self.log))

    def get(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://{self.address}{path}?{query}", timeout=10) as answer:
            return answer.read().decode()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    def _read(self):
        for line in self.process.stderr:
            self._lines.put(line)


def until(ask, seconds=DEADLINE_SECONDS):
    """Ask until there is an answer, and return that."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := ask():
            return found
        threading.Event().wait(0.2)
    raise AssertionError("it never came to be as expected")


def exporter(*arguments):
    return Process(
        [
            sys.executable, "-m", "cli", "exporter", "--listen", "127.0.0.1:0",
            *QUICK, *arguments,
        ],
        announced=r'"address": "([^"]+)".*"event": "serving"',
    )  # fmt: skip


def samples(text):
    return [s for family in text_string_to_metric_families(text) for s in family.samples]


def program(name):
    try:
        return binary(name)
    except Unavailable as reason:
        skip_or_fail(str(reason))


class Prometheus(Process):
    """A Prometheus that scrapes targets every second."""

    def __init__(self, folder, jobs):
        configuration = folder / "prometheus.yml"
        configuration.write_text(
            json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": jobs})
        )
        super().__init__(
            [
                program("prometheus"),
                f"--config.file={configuration}",
                f"--storage.tsdb.path={folder / 'data'}",
                "--web.listen-address=127.0.0.1:0",
            ],
            announced=r'msg="Listening on".* address=(\S+)',
        )
        self.wait_for("Server is ready")

    def query(self, text):
        """Return the series of an instant query, as labels and value."""
        answer = json.loads(self.get("/api/v1/query", query=text))["data"]
        return [(series["metric"], float(series["value"][1])) for series in answer["result"]]

    def label_values(self, label, selector):
        parameters = {"match[]": selector}
        return json.loads(self.get(f"/api/v1/label/{label}/values", **parameters))["data"]


@contextmanager
def kubelet(socket, allocations):
    """Serve as the kubelet on a loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    fake = FakeKubelet(socket)
    fake.give(allocations)

    def wait(work):
        asyncio.run_coroutine_threadsafe(work, loop).result(DEADLINE_SECONDS)

    try:
        wait(fake.start())
        yield
        wait(fake.stop())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(DEADLINE_SECONDS)
        loop.close()


def job(name, *targets, honor_labels, labels, keep=".*"):
    """Return a scrape job; ``keep`` matches the names of the series to keep."""
    chosen = {"source_labels": ["__name__"], "regex": keep, "action": "keep"}
    return {
        "job_name": name,
        "honor_labels": honor_labels,
        "static_configs": [{"targets": [t.address for t in targets], "labels": labels}],
        "metric_relabel_configs": [chosen],
    }


def complaints(page):
    """Return what promtool says of a page, one line each."""
    done = subprocess.run(
        [program("promtool"), "check", "metrics"],
        input=page, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return (done.stdout + done.stderr).splitlines()
