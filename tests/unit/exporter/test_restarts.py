"""When NVML is started anew: at once, soon where the driver is gone, rarely for a lost GPU."""

from exporter.nvml.restarts import (
    FIRST_PAUSE_FOR_LOST_SECONDS,
    LONGEST_PAUSE_FOR_LOST_SECONDS,
    LONGEST_PAUSE_SECONDS,
    Restarts,
)


def pauses(tell, restarts, times):
    """Return how long each start waits when the same reason comes back after each."""
    now, found = 0.0, []
    for _ in range(times):
        restarts.begun()
        tell(now)
        pause = next(p for p in range(10_000) if restarts.is_due(now + p))
        found.append(pause)
        now += pause
    return found


def test_the_first_start_is_due_at_once():
    assert Restarts(1000.0).is_due(1000.0)


def test_nothing_is_due_after_a_start_that_worked():
    restarts = Restarts(0.0)
    restarts.begun()
    assert not restarts.is_due(1e9)


def test_pauses_without_a_driver_double_up_to_a_minute():
    restarts = Restarts(0.0)
    assert pauses(restarts.driver_gone, restarts, 8) == [1, 2, 4, 8, 16, 32, 60, 60]
    assert LONGEST_PAUSE_SECONDS == 60


def test_pauses_for_a_lost_gpu_double_up_to_five_minutes():
    restarts = Restarts(0.0)
    assert pauses(restarts.gpu_missing, restarts, 7) == [10, 20, 40, 80, 160, 300, 300]
    assert LONGEST_PAUSE_FOR_LOST_SECONDS == 300


def test_a_reason_that_is_told_with_every_tick_does_not_move_the_start():
    restarts = Restarts(0.0)
    restarts.begun()
    for tick in range(10):
        restarts.driver_gone(tick / 10)
    assert restarts.is_due(1.0)


def test_a_driver_that_goes_does_not_wait_for_the_turn_of_a_lost_gpu():
    restarts = Restarts(0.0)
    restarts.begun()
    restarts.gpu_missing(0.0)
    restarts.driver_gone(2.0)
    assert restarts.is_due(3.0)


def test_a_driver_that_answers_calls_off_its_start_but_not_that_for_a_lost_gpu():
    restarts = Restarts(0.0)
    restarts.begun()
    restarts.driver_gone(0.0)
    restarts.gpu_missing(0.0)
    restarts.driver_works()
    assert not restarts.is_due(FIRST_PAUSE_FOR_LOST_SECONDS - 1)
    assert restarts.is_due(FIRST_PAUSE_FOR_LOST_SECONDS)


def test_pauses_begin_anew_once_everything_answers():
    restarts = Restarts(0.0)
    pauses(restarts.gpu_missing, restarts, 5)
    pauses(restarts.driver_gone, restarts, 5)
    restarts.all_answer()
    assert pauses(restarts.gpu_missing, restarts, 1) == [10]
    assert pauses(restarts.driver_gone, restarts, 1) == [1]
