"""A time limit ends what runs, and nothing that puts something back."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager, suppress
from time import monotonic, sleep

import pytest
from tests.own_process import in_own_process

from anyshape.modules.call_limits import OutOfTime, TimeLimit


def spin() -> None:
    while True:
        sum(range(100))


@in_own_process
def test_a_loop_without_an_end_is_ended() -> None:
    with pytest.raises(OutOfTime), TimeLimit(0.3):
        spin()


@in_own_process
def test_a_call_that_waits_is_ended() -> None:
    with pytest.raises(OutOfTime), TimeLimit(0.3):
        sleep(1000)


@in_own_process
def test_what_catches_every_exception_does_not_keep_it() -> None:
    with pytest.raises(OutOfTime), TimeLimit(0.3):
        while True:
            with suppress(Exception):
                spin()


@in_own_process
def test_it_is_raised_again_where_something_swallows_it() -> None:
    caught = 0
    with pytest.raises(OutOfTime), TimeLimit(0.2):
        while True:
            try:
                spin()
            except BaseException:
                caught += 1
                if caught > 1:
                    raise
    assert caught == 2


def wait(seconds: float) -> None:
    end = monotonic() + seconds
    while monotonic() < end:
        sum(range(50))


@in_own_process
def test_putting_back_is_never_interrupted() -> None:
    begun, finished = [], []

    @contextmanager
    def patched():
        try:
            yield
        finally:
            begun.append(True)
            wait(0.1)
            finished.append(True)

    with pytest.raises(OutOfTime), TimeLimit(0.05):
        while True:
            with patched():
                wait(0.1)
    assert len(begun) == len(finished) >= 1


@in_own_process
def test_a_part_ends_by_itself_and_leaves_the_rest() -> None:
    with TimeLimit(60) as limit:
        with pytest.raises(OutOfTime), limit.part(0.005):
            spin()
        assert limit.left > 30
        with limit.part(0.5) as seconds:
            assert 20 < seconds <= 30


@in_own_process
def test_waiting_uses_no_cpu_time_of_a_part() -> None:
    with TimeLimit(60) as limit:
        with limit.part(0.005, of_cpu=True):
            sleep(1)
            limit.check()
        with pytest.raises(OutOfTime), limit.part(0.005, of_cpu=True):
            spin()
        assert limit.left > 30


def test_a_part_of_cpu_time_leaves_some_of_the_real_time() -> None:
    with TimeLimit(1000) as limit, limit.part(0.5, of_cpu=True) as seconds:
        assert 490 < seconds <= 500
        assert 790 < limit._deadlines[-1] - monotonic() <= 800


@in_own_process
def test_nothing_is_raised_after_the_end() -> None:
    for _ in range(20):
        try:
            with TimeLimit(0.01):
                end = monotonic() + 0.012
                while monotonic() < end:
                    sum(range(10))
        except OutOfTime:
            pass
        sum(range(1000))
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


@in_own_process
def test_a_limit_inside_a_limit_puts_its_alarm_back() -> None:
    with pytest.raises(OutOfTime), TimeLimit(0.5):
        with suppress(OutOfTime), TimeLimit(0.1):
            spin()
        with TimeLimit(1000):
            pass
        spin()


def test_in_the_callers_process_the_time_is_looked_at_and_nothing_interrupts() -> None:
    handler, threads = signal.getsignal(signal.SIGALRM), threading.active_count()
    with TimeLimit(0.05) as limit:
        assert (signal.getsignal(signal.SIGALRM), threading.active_count()) == (handler, threads)
        wait(0.1)
        with pytest.raises(OutOfTime):
            limit.check()


@in_own_process
def test_in_another_thread_the_time_is_looked_at() -> None:
    ended = []

    def limited() -> None:
        with TimeLimit(0.05) as limit:
            wait(0.1)
            try:
                limit.check()
            except OutOfTime:
                ended.append(True)

    thread = threading.Thread(target=limited)
    thread.start()
    thread.join(30)
    assert ended == [True]


@in_own_process
def test_without_a_limit_nothing_is_watched() -> None:
    with TimeLimit() as limit:
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
        with limit.part(0.5):
            limit.check()


def test_no_time_at_all_is_over_at_once() -> None:
    with pytest.raises(OutOfTime), TimeLimit(0) as limit:
        limit.check()
