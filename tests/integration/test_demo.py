"""The demonstration does what it prints: every address and every request works."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator

import pytest

pytestmark = pytest.mark.timeout(120)

DEADLINE_SECONDS = 60


PORTS = 8


def free_port() -> int:
    """Return a port that is free with those after it, as many as the demonstration takes.

    Below the range that the kernel hands out: there any connection may take one meanwhile.
    """
    for port in range(20_000 + os.getpid() % 1000 * PORTS, 32_000, PORTS):
        if all(is_free(port + offset) for offset in range(PORTS)):
            return port
    raise AssertionError("no free ports")


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def start(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "cli", "demo", "--simulated", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


@pytest.fixture(scope="module")
def guide() -> Iterator[str]:
    demo = start(f"--port={free_port()}")
    lines = []
    try:
        for line in demo.stdout:
            lines.append(line)
            if line.rstrip().endswith("/v1beta2'"):
                break
        yield "".join(lines)
    finally:
        demo.send_signal(signal.SIGINT)
        out, err = demo.communicate(timeout=DEADLINE_SECONDS)
        assert (demo.returncode, err) == (0, ""), out


def until(attempt):
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (found := attempt()):
        assert time.monotonic() < deadline, "nothing came"
    return found


def test_every_page_that_it_names_opens(guide):
    pages = re.findall(r"^  (http://\S+)", guide, re.MULTILINE)
    assert len(pages) == 4
    for page in pages:
        with urllib.request.urlopen(page, timeout=10) as answer:
            assert answer.status == 200


def test_every_request_that_it_names_gets_an_answer(guide):
    requests = re.findall(r"^  (curl .*)$", guide, re.MULTILINE)
    assert len(requests) == 6
    for request in requests:
        streams = "watch=true" in request
        command = f"{request} | head -c 2000" if streams else request
        answer = until(lambda command=command: shell(command))
        assert "Failure" not in answer, request


def shell(command: str) -> str:
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=30, check=False
    )
    return "" if '"status":"Failure"' in done.stdout.replace(" ", "") else done.stdout


def test_an_hpa_of_the_demonstration_gets_a_value_for_every_pod(guide):
    (request, *_) = re.findall(r"^  (curl .*gpu_utilization')$", guide, re.MULTILINE)
    answer = until(lambda: shell(request))
    assert "chat-7d9f8b6c5-4xk2p" in answer
    assert shlex.split(request)[0] == "curl"


def test_the_cluster_has_the_devices_that_its_pods_hold(guide):
    (fleet,) = re.findall(r"^  (http://\S+/) +the whole fleet", guide, re.MULTILINE)
    page = f"{fleet}metrics"
    facts = until(
        lambda: re.findall(r"^gpu_cluster_allocatable_devices.* (\S+)$", text(page), re.MULTILINE)
    )
    assert all(float(count) > 0 for count in facts)
    assert not re.findall(r"^gpu_cluster_overcommitted_devices.*", text(page), re.MULTILINE)


def text(page: str) -> str:
    with urllib.request.urlopen(page, timeout=10) as answer:
        return answer.read().decode()


def test_a_taken_port_is_told_in_a_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        demo = start(f"--port={port}")
        _, err = demo.communicate(timeout=DEADLINE_SECONDS)
    assert demo.returncode == 2
    assert str(port) in err
    assert "Traceback" not in err


def test_an_unknown_scenario_is_told_in_a_line():
    demo = start("--scenario=nowhere")
    _, err = demo.communicate(timeout=DEADLINE_SECONDS)
    assert demo.returncode == 2
    assert "nowhere" in err
    assert "demo" in err
    assert "Traceback" not in err
