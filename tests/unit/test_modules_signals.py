"""What a handler of the user's own raises passes every `except Exception`, and comes out as it was."""

from __future__ import annotations

import contextlib
import signal
import threading

import pytest

from anyshape.modules.call_limits import handlers_go_through


class Alarm(Exception):
    pass


def ring(number, frame) -> None:
    raise Alarm("the user's own")


@pytest.fixture
def alarm():
    before = signal.signal(signal.SIGALRM, ring)
    yield
    signal.signal(signal.SIGALRM, before)


def swallow_everything() -> None:
    with contextlib.suppress(Exception):
        signal.raise_signal(signal.SIGALRM)


def test_it_goes_through_code_that_catches_exceptions(alarm) -> None:
    with pytest.raises(Alarm, match="the user's own") as caught, handlers_go_through():
        swallow_everything()
    assert caught.value.__cause__ is None
    assert signal.getsignal(signal.SIGALRM) is ring


def test_outside_it_would_be_swallowed(alarm) -> None:
    swallow_everything()


def test_a_handler_that_does_not_raise_runs(alarm) -> None:
    seen = []
    signal.signal(signal.SIGALRM, lambda number, frame: seen.append(number))
    with handlers_go_through():
        signal.raise_signal(signal.SIGALRM)
    assert seen == [signal.SIGALRM]


def test_a_handler_that_is_set_meanwhile_stays(alarm) -> None:
    def other(number, frame) -> None: ...

    with handlers_go_through():
        signal.signal(signal.SIGALRM, other)
    assert signal.getsignal(signal.SIGALRM) is other


def test_other_threads_are_left_alone(alarm) -> None:
    seen = []

    def look() -> None:
        with handlers_go_through():
            seen.append(signal.getsignal(signal.SIGALRM))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [ring]


def test_our_own_errors_pass_unchanged() -> None:
    with pytest.raises(ValueError, match="mine"), handlers_go_through():
        raise ValueError("mine")
