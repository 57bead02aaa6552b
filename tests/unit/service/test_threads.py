"""One thread as long as nothing hangs; no job waits for another."""

import threading

from slicewatch.service.threads import Threads

WAIT_SECONDS = 10


def run(threads):
    """Run a job to its end and return the thread that it ran on."""
    ran, done = [], threading.Event()

    def job():
        ran.append(threading.current_thread())
        done.set()

    threads.run(job)
    assert done.wait(WAIT_SECONDS)
    return ran[0]


def rest(threads):
    """Wait until a thread is idle."""
    deadline = threading.Event()
    for _ in range(1000):
        if threads._idle is not None:
            return
        deadline.wait(0.01)
    raise AssertionError("no thread came to rest")


def test_the_idle_thread_is_used_again():
    threads = Threads()
    first = run(threads)
    rest(threads)
    assert run(threads) is first
    threads.close()
    threads.join()


def test_a_job_that_hangs_holds_up_no_other_and_leaves_no_thread_behind():
    threads, gate = Threads(), threading.Event()
    threads.run(gate.wait)
    other = run(threads)
    rest(threads)
    assert run(threads) is other
    gate.set()
    threads.close()
    threads.join()
    assert threads._living == set()


def test_a_thread_that_returns_late_ends_where_another_is_idle():
    threads, gate = Threads(), threading.Event()
    threads.run(gate.wait)
    run(threads)
    rest(threads)
    (stuck,) = (t for t in threads._living if t is not run(threads))
    gate.set()
    stuck.join(WAIT_SECONDS)
    assert not stuck.is_alive()
    threads.close()
    threads.join()


def test_all_are_daemons_so_that_none_keeps_a_process_alive():
    threads = Threads()
    assert run(threads).daemon
    threads.close()


def test_a_job_of_its_own_may_wait_for_all_the_others():
    threads = Threads()
    run(threads)
    threads.close()
    done = threading.Event()

    def last():
        threads.join()
        done.set()

    threads.run(last)
    assert done.wait(WAIT_SECONDS)
