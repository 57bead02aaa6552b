"""The network of the benchmark's own: its addresses are there, and the machine's are left alone."""

import socket
import subprocess
import sys
from contextlib import ExitStack

import pytest

from bench import networks
from testbed import require
from testbed.binaries import Unavailable

SECONDS = 5


@pytest.fixture
def exit_stack():
    with ExitStack() as stack:
        yield stack


def listener():
    return socket.create_server(("0.0.0.0", 0))


def reached(address, server):
    """Return where a connection arrives: at the address that it was made to."""
    with socket.create_connection((address, server.getsockname()[1]), SECONDS):
        accepted, _ = server.accept()
        with accepted:
            return accepted.getsockname()[0]


def enter(stack):
    try:
        stack.enter_context(networks.own())
    except Unavailable as why:
        require.skip_or_fail(str(why))


def test_every_address_of_it_leads_to_the_listener_and_says_which_it_was(exit_stack):
    enter(exit_stack)
    with listener() as server:
        for address in ("198.18.0.0", "198.18.19.136", "198.19.255.255", "127.0.0.1"):
            assert reached(address, server) == address


def test_processes_that_are_started_in_it_are_in_it(exit_stack):
    enter(exit_stack)
    code = "import socket; print(socket.create_server(('198.18.1.2', 0)).getsockname()[0])"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "198.18.1.2"


def test_the_machines_network_is_out_of_reach_in_it_and_there_again_afterwards(exit_stack):
    with listener() as outside:
        enter(exit_stack)
        with pytest.raises(ConnectionRefusedError):
            reached("127.0.0.1", outside)
        exit_stack.close()
        assert reached("127.0.0.1", outside) == "127.0.0.1"


def test_the_machines_network_is_there_again_after_a_failure(exit_stack):
    with listener() as outside:
        enter(exit_stack)
        with pytest.raises(LookupError), exit_stack:
            raise LookupError
        assert reached("127.0.0.1", outside) == "127.0.0.1"


def test_who_has_no_ip_program_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr(networks.shutil, "which", lambda *_args, **_named: None)
    with pytest.raises(Unavailable, match="iproute2"), networks.own():
        raise AssertionError
