"""Forked processes: messages, deaths and their lines, ends of what they started, folders."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch

from anyshape.processes import forked as forked_file
from anyshape.processes import is_own_process
from anyshape.processes.forked import Channel, Forked, Gone
from anyshape.processes.run_folders import make_folder


@contextmanager
def forked(work: Callable[[Channel], None], *, quiet: bool = False) -> Iterator[Forked]:
    process = Forked(work, quiet=quiet)
    try:
        yield process
    finally:
        process.close()


def answer(channel: Channel) -> None:
    while True:
        channel.send(("answer", channel.receive()))


def is_gone(pid: int) -> bool:
    """Whether a process has ended, or ends soon; one whose parent has not asked for its status has."""
    for _ in range(1000):
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize(
    "message",
    [
        {"a": [1, None, "text"]},
        np.arange(300_000).reshape(3, -1),
        torch.randn(400, 300),
        torch.randn(4, 3).t(),
        torch.zeros(0, 3),
        torch.ones(2, dtype=torch.bfloat16),
        torch.tensor(3.5, requires_grad=True),
        torch.nn.Parameter(torch.ones(3)),
        b"x" * 5_000_000,
    ],
    ids=["objects", "array", "tensor", "transposed", "empty", "bfloat16", "with gradient", "parameter", "bytes"],
)
def test_a_message_comes_back_as_it_was(message: Any) -> None:
    with forked(answer) as process:
        for _ in range(2):
            process.channel.send(message)
            word, given = process.channel.receive()
            assert word == "answer" and type(given) is type(message)
            if isinstance(message, torch.Tensor):
                assert torch.equal(given, message) and given.dtype == message.dtype
                assert given.requires_grad == message.requires_grad
            else:
                assert np.array_equal(given, message)


def test_a_message_that_cannot_be_sent_raises_and_the_next_one_arrives() -> None:
    with forked(answer) as process:
        with pytest.raises((TypeError, AttributeError)):
            process.channel.send(lambda: None)
        process.channel.send(1)
        assert process.channel.receive() == ("answer", 1)


def test_the_child_is_a_process_of_ours_and_computes_with_one_thread() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with forked(lambda channel: channel.send((is_own_process(), torch.get_num_threads()))) as process:
            assert process.channel.receive() == (True, 1)
        assert (is_own_process(), torch.get_num_threads()) == (False, 2)
    finally:
        torch.set_num_threads(before)


def read_nowhere(channel: Channel) -> None:
    ctypes.string_at(0)  # this line


def line_of(words: str) -> int:
    return Path(__file__).read_text(encoding="utf-8").splitlines().index(f"    {words}") + 1


def test_a_death_by_a_signal_has_the_line() -> None:
    with forked(read_nowhere) as process:
        with pytest.raises(Gone):
            process.channel.receive()
        death = process.death()
    here = next(frame for frame in death.frames if frame.file == __file__)
    assert death.signal == "SIGSEGV" and not death.is_from_outside
    assert (here.line, here.function) == (line_of("ctypes.string_at(0)  # this line"), "read_nowhere")
    assert str(death) == "the process was ended by SIGSEGV (a kernel used memory that it does not have)"


def sleep_long(channel: Channel) -> None:
    channel.send("begun")
    time.sleep(1000)  # that one


def test_a_process_that_is_killed_says_where_it_was() -> None:
    with forked(sleep_long) as process:
        process.channel.receive()
        while psutil.Process(process.pid).status() != psutil.STATUS_SLEEPING:
            time.sleep(0.01)
        process.describe_where()
        process.kill()
        death = process.death()
    assert death.signal == "SIGKILL" and death.is_from_outside
    assert (death.frames[0].function, death.frames[0].line) == ("sleep_long", line_of("time.sleep(1000)  # that one"))


def test_a_process_that_ends_itself_has_no_signal() -> None:
    with forked(lambda channel: os._exit(3)) as process:
        assert (process.death().status, process.death().signal) == (3, "")
        assert not process.is_alive()


def test_what_is_asked_to_stop_may_clean_up(tmp_path: Path) -> None:
    def work(channel: Channel) -> None:
        try:
            sleep_long(channel)
        finally:
            (tmp_path / "cleaned").touch()

    with forked(work) as process:
        process.channel.receive()
        process.stop()
        assert process.death().status == 0
    assert (tmp_path / "cleaned").exists()


class Stopping:
    """Asks its own process to end as soon as somebody looks for a stream in it."""

    @property
    def stdout(self) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return sys.stdout


def test_a_child_that_is_asked_to_stop_while_it_ends_does_not_go_on_as_the_caller(tmp_path: Path) -> None:
    def work(channel: Channel) -> None:
        forked_file.sys = Stopping()  # type: ignore[attr-defined]

    caller = os.getpid()
    try:
        with forked(work) as process:
            process.death()
    finally:
        if os.getpid() != caller:
            (tmp_path / "went on").touch()
            os._exit(1)
    assert not list(tmp_path.iterdir())


def start_another(channel: Channel) -> None:
    channel.send(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"]).pid)
    time.sleep(1000)


def test_the_end_of_a_process_is_that_of_all_that_it_has_started() -> None:
    with forked(start_another) as process:
        grandchild = process.channel.receive()
        assert psutil.pid_exists(grandchild)
    assert is_gone(grandchild)


def test_a_process_ends_with_its_caller() -> None:
    script = (
        "import os, time\n"
        "from anyshape.processes.forked import Forked\n"
        "child = Forked(lambda channel: (channel.send(os.getpid()), time.sleep(1000)))\n"
        "print(child.channel.receive(), flush=True)\n"
        "time.sleep(1000)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as caller:
        assert caller.stdout is not None
        child = int(caller.stdout.readline())
        caller.kill()
    assert is_gone(child)


def test_the_end_of_one_is_seen_while_a_later_one_lives() -> None:
    with forked(lambda channel: channel.receive()) as first, forked(answer):
        first.channel.send("end")
        assert first.channel.is_ready(30)
        with pytest.raises(Gone):
            first.channel.receive()


def test_handlers_of_the_caller_stay_in_its_process() -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with forked(lambda channel: channel.send(signal.getsignal(signal.SIGUSR1))) as process:
            assert process.channel.receive() == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_words_on_stderr_are_kept_from_the_terminal_where_that_is_wanted(capfd: pytest.CaptureFixture[str]) -> None:
    def work(channel: Channel) -> None:
        os.write(2, b"from a library\n")

    for quiet in (True, False):
        with forked(work, quiet=quiet) as process:
            process.death()
        assert capfd.readouterr().err == ("" if quiet else "from a library\n")


def test_folders_of_processes_that_have_ended_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with forked(lambda channel: None) as process:
        process.death()
    left = tmp_path / f"anyshape-run-{process.pid}-left"
    alive = tmp_path / f"anyshape-run-{os.getpid()}-other"
    (left / "inside").mkdir(parents=True)
    alive.mkdir()
    made = make_folder()
    assert sorted(tmp_path.iterdir()) == sorted([alive, made])


def waits_beside_a_thread(channel: Channel) -> None:
    def asked() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR2)
        channel.send("asked")

    threading.Thread(target=asked, daemon=True).start()
    time.sleep(60)


def test_a_process_that_is_asked_where_it_is_tells_the_line_of_its_work_whichever_thread_gets_the_signal() -> None:
    with forked(waits_beside_a_thread) as process:
        assert process.channel.receive() == "asked"
        os.kill(process.pid, signal.SIGKILL)
        functions = [frame.function for frame in process.death().frames]
        assert "waits_beside_a_thread" in functions and "asked" not in functions
