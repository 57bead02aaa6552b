"""How a process ends: with 0 on a signal, with 1 and the reason on an error."""

import asyncio
import json
import signal
import subprocess
import sys
import textwrap

import pytest

from slicewatch.service import tasks

PRELUDE = """
import asyncio, sys
from slicewatch.service import logs, tasks
logs.configure()

async def fail(error):
    await asyncio.sleep(0)
    raise error

async def forever():
    print("ready", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        print("tidied", flush=True)
"""


def start(body):
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PRELUDE + textwrap.dedent(body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process):
    """Return exit status, output, and the logged events; no line may be anything else."""
    with process:
        out, err = process.communicate(timeout=20)
    return process.returncode, out.split(), [json.loads(line) for line in err.splitlines()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_with_0_after_tidying_up(number):
    process = start("sys.exit(tasks.run(forever))")
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    status, out, (event,) = ended(process)
    assert status == 0
    assert out == ["tidied"]
    assert (event["event"], event["signal"]) == ("stopped", number.name)


def test_a_main_that_returns_ends_the_process_with_0():
    process = start("""
        async def main():
            print("done")
        sys.exit(tasks.run(main))
    """)
    assert ended(process) == (0, ["done"], [])


def test_a_failing_background_task_ends_the_process_with_1_and_says_why():
    process = start("""
        async def main():
            async with tasks.background(("reader", fail(RuntimeError("driver gone")))):
                await forever()
        sys.exit(tasks.run(main))
    """)
    status, out, (event,) = ended(process)
    assert status == 1
    assert out == ["ready", "tidied"]
    assert event["level"] == "error"
    assert event["errors"] == ["RuntimeError('driver gone')"]
    assert "driver gone" in event["exception"]


def test_an_error_of_the_root_itself_ends_the_process_with_1_and_says_why():
    process = start("""
        async def main():
            await fail(OSError(98, "Address already in use"))
        sys.exit(tasks.run(main))
    """)
    status, _, (event,) = ended(process)
    assert status == 1
    assert event["errors"] == ["OSError(98, 'Address already in use')"]


def test_errors_of_nested_groups_are_named_one_by_one():
    process = start("""
        async def main():
            async with tasks.background(("outer", fail(KeyError("a")))):
                async with tasks.background(("inner", fail(ValueError("b")))):
                    await forever()
        sys.exit(tasks.run(main))
    """)
    status, _, (event,) = ended(process)
    assert status == 1
    assert set(event["errors"]) == {"KeyError('a')", "ValueError('b')"}


def test_errors_of_the_user_are_reported_in_a_line_each_without_a_trace():
    process = start("""
        async def main():
            both = ("a", fail(OSError("port taken"))), ("b", fail(OSError("no such folder")))
            async with tasks.background(*both):
                await forever()
        sys.exit(tasks.run(main, name="slicewatch x", user_errors=(OSError,)))
    """)
    with process:
        _, err = process.communicate(timeout=20)
    assert process.returncode == 2
    assert sorted(err.splitlines()) == ["slicewatch x: no such folder", "slicewatch x: port taken"]


def test_an_error_while_stopping_is_not_hidden_by_the_signal():
    process = start("""
        async def main():
            try:
                await forever()
            finally:
                raise RuntimeError("could not flush")
        sys.exit(tasks.run(main))
    """)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    status, _, (event,) = ended(process)
    assert status == 1
    assert event["errors"] == ["RuntimeError('could not flush')"]


async def test_background_tasks_are_named_and_end_with_the_body():
    cancelled = asyncio.Event()

    async def wait():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async with tasks.background(("waiter", wait())):
        await asyncio.sleep(0)
        assert "waiter" in {task.get_name() for task in asyncio.all_tasks()}
    assert cancelled.is_set()
    assert "waiter" not in {task.get_name() for task in asyncio.all_tasks()}


async def test_a_body_may_start_more_tasks_which_are_waited_for():
    done = []

    async def work():
        await asyncio.sleep(0)
        done.append(True)

    async with tasks.background() as group:
        group.create_task(work())
    assert done == [True]


async def test_an_error_of_the_body_stops_the_tasks_beside_it():
    async def wait():
        await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup) as failed:
        async with tasks.background(("waiter", wait())):
            raise RuntimeError("body")
    assert [str(error) for error in failed.value.exceptions] == ["body"]
    assert "waiter" not in {task.get_name() for task in asyncio.all_tasks()}


def test_a_file_that_the_system_refuses_is_named_first(tmp_path, capsys):
    missing = tmp_path / "missing.yaml"
    with pytest.raises(FileNotFoundError) as refused:
        missing.read_text()
    assert tasks.refuse("tool", [refused.value, "something else"]) == 2
    assert capsys.readouterr().err == (
        f"tool: {missing}: No such file or directory\ntool: something else\n"
    )
