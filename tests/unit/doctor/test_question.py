"""Questions that are answered, fail, or never return."""

import threading
import time

from exporter.doctor.facts import NoAnswer
from exporter.doctor.question import Question


def test_an_answer_is_passed_on():
    assert Question(lambda: "yes").answer(time.monotonic() + 10) == "yes"


def test_a_failure_says_what_it_was():
    def fail():
        raise PermissionError("not for you")

    assert Question(fail).answer(time.monotonic() + 10) == NoAnswer("not for you")


def test_a_failure_without_words_has_a_name():
    def fail():
        raise TimeoutError

    assert Question(fail).answer(time.monotonic() + 10) == NoAnswer("TimeoutError")


def test_one_that_never_returns_is_left_behind():
    release = threading.Event()
    question = Question(release.wait)
    began = time.monotonic()
    assert question.answer(began + 0.05) == NoAnswer("no answer in time")
    assert question.open
    assert time.monotonic() - began < 5
    release.set()
    assert question.answer(time.monotonic() + 10) is True
