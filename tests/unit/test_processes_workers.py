"""Calls in workers: a crash, a hang or too much memory is an answer, and the next call works."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.own_process import in_own_process

from anyshape.processes import workers
from anyshape.processes.workers import Worker, WorkerDied, survived


@contextmanager
def worker(function: Callable[[Any], Any], seconds: float = 60.0) -> Iterator[Worker]:
    made = Worker(function, seconds=seconds)
    try:
        yield made
    finally:
        made.close()


def crash_below_zero(number: int) -> int:
    if number < 0:
        ctypes.string_at(0)  # it crashes here
    return number * 2


def line_of(words: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip() == words)


def test_a_call_that_crashes_has_its_line_and_the_next_one_answers() -> None:
    with worker(crash_below_zero) as calls:
        assert calls.call(3) == 6
        with pytest.raises(WorkerDied, match="SIGSEGV") as died:
            calls.call(-1)
        frame = died.value.death.frames[1]
        assert (died.value.death.signal, frame.function) == ("SIGSEGV", "crash_below_zero")
        assert frame.line == line_of("ctypes.string_at(0)  # it crashes here")
        assert calls.call(4) == 8


def sleep_below_zero(number: int) -> int:
    if number < 0:
        time.sleep(1000)  # it sleeps here
    return number * 2


def test_a_call_that_takes_too_long_is_ended_and_the_next_one_answers() -> None:
    with worker(sleep_below_zero, seconds=0.5) as calls:
        with pytest.raises(WorkerDied, match=r"took longer than 0\.5 s") as died:
            calls.call(-1)
        assert died.value.death.frames[0].line == line_of("time.sleep(1000)  # it sleeps here")
        assert calls.call(4) == 8


def test_a_call_that_computes_nothing_is_ended_before_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_IDLE_S", 1.5)
    with (
        worker(sleep_below_zero, seconds=1000) as calls,
        pytest.raises(WorkerDied, match=r"computed nothing for 1\.5 s"),
    ):
        calls.call(-1)


def test_an_error_is_raised_here_and_the_worker_lives_on() -> None:
    seen: list[int] = []  # in the worker

    def count(number: int) -> int:
        seen.append(number)
        if number == 0:
            raise ZeroDivisionError("by nothing")
        return len(seen)

    with worker(count) as calls:
        assert calls.call(1) == 1
        with pytest.raises(ZeroDivisionError, match="by nothing"):
            calls.call(0)
        assert calls.call(2) == 3
    assert seen == []


def test_a_request_that_cannot_be_sent_is_answered() -> None:
    with worker(lambda function: function(20)) as calls:
        assert calls.call(abs) == 20
        assert calls.call(lambda number: number + 1) == 21


def test_an_answer_that_cannot_be_sent_is_an_error() -> None:
    errors = (RuntimeError, AttributeError, TypeError)
    with worker(lambda number: lambda: number) as calls, pytest.raises(errors, match="pickle"):
        calls.call(1)


def test_a_worker_that_is_killed_from_outside_once_is_started_again(tmp_path: Path) -> None:
    def call(number: int) -> int:
        if not (tmp_path / "killed").exists():
            (tmp_path / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    with worker(call) as calls:
        assert calls.call(5) == 5


def test_a_worker_that_is_killed_between_two_calls_is_started_again() -> None:
    with worker(lambda number: os.getpid()) as calls:
        first = calls.call(0)
        os.kill(first, signal.SIGKILL)
        assert calls.call(0) != first


def read_behind(tensor: torch.Tensor) -> int:
    ctypes.string_at(tensor.data_ptr() + tensor.nbytes, 1)
    return 1


def test_what_reads_past_the_end_of_an_input_dies() -> None:
    tensor = torch.ones(3, 5)
    with worker(lambda given: read_behind(given) if given.numel() == 15 else 0) as calls:
        assert calls.call(torch.ones(2)) == 0
        with pytest.raises(WorkerDied, match="SIGSEGV"):
            calls.call(tensor)


def test_where_the_first_call_already_reads_past_the_end_inputs_are_not_guarded() -> None:
    with worker(read_behind) as calls:
        assert calls.call(torch.ones(3, 5)) == 1


@in_own_process
def test_calls_that_survive_are_told_from_those_that_do_not() -> None:
    def fail() -> None:
        raise ValueError

    calls = [lambda: None, lambda: ctypes.string_at(0), fail, lambda: time.sleep(1000)]
    assert survived(calls, seconds=1) == [True, False, True, False]
    assert survived([calls[0], calls[2]], seconds=60) == [True, True]


def test_without_a_process_of_its_own_every_call_is_taken_to_survive() -> None:
    assert survived([lambda: ctypes.string_at(0)], seconds=1) == [True]


def test_a_call_that_was_begun_goes_on_meanwhile_and_is_made_again_where_it_died(tmp_path: Path) -> None:
    def answer(request: str) -> int:
        if request == "deadly":
            os.abort()
        (tmp_path / request).touch()
        return os.getpid()

    request, deadly = "begun", "deadly"
    with worker(answer) as calls:
        pid = calls.call("first")
        calls.begin(request)
        while not (tmp_path / request).exists():
            time.sleep(0.01)
        assert calls.call(request) == pid
        calls.begin(deadly)
        with pytest.raises(WorkerDied, match="SIGABRT"):
            calls.call(deadly)
        assert calls.call("last") != pid
