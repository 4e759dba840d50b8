"""A time limit ends what runs, and nothing that puts something back."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from time import monotonic, sleep

import pytest

from anyshape.modules.call_limits import OutOfTime, TimeLimit


def spin() -> None:
    while True:
        sum(range(100))


def test_a_loop_without_an_end_is_ended() -> None:
    began = monotonic()
    with pytest.raises(OutOfTime), TimeLimit(0.3):
        spin()
    assert monotonic() - began < 10


def test_what_catches_every_exception_does_not_keep_it() -> None:
    with pytest.raises(OutOfTime), TimeLimit(0.3):
        while True:
            with suppress(Exception):
                spin()


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


def test_a_part_ends_by_itself_and_leaves_the_rest() -> None:
    with TimeLimit(60) as limit:
        with pytest.raises(OutOfTime), limit.part(0.005):
            spin()
        assert limit.left > 30
        with limit.part(0.5) as seconds:
            assert 20 < seconds <= 30


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
    assert threading.active_count() < 20


def test_it_works_in_other_threads() -> None:
    ended = []

    def limited() -> None:
        try:
            with TimeLimit(0.2):
                spin()
        except OutOfTime:
            ended.append(True)

    thread = threading.Thread(target=limited)
    thread.start()
    thread.join(30)
    assert ended == [True]


def test_without_a_limit_nothing_is_watched() -> None:
    before = threading.active_count()
    with TimeLimit() as limit:
        assert threading.active_count() == before
        with limit.part(0.5):
            limit.check()


def test_no_time_at_all_is_over_at_once() -> None:
    with pytest.raises(OutOfTime), TimeLimit(0) as limit:
        limit.check()
