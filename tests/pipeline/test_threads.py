"""Exports in several threads run at once, and nothing of the caller's process changes."""

from __future__ import annotations

import gc
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.pipeline.served import Served, served, served_inputs
from torch import nn

import anyshape
from anyshape.intercept.turns import WAITING, exporting
from anyshape.processes.preload import load_libraries

SMALL = ["1 <= batch <= 3", "1 <= seq <= 6"]


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(x)[0]


class Looped(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for step in range(x.shape[1]):
            x = x + step
        return x


class Computed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, : int(x.shape[1] * 0.5) + 1] * len(x)


def sequences(batch: int = 2, seq: int = 5) -> torch.Tensor:
    return torch.randn(batch, seq, 4)


def run_together(*jobs: Callable[[], Any]) -> list[Any]:
    done: list[Any] = [None] * len(jobs)

    def run(place: int) -> None:
        try:
            done[place] = jobs[place]()
        except BaseException as error:
            done[place] = error

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done


class Server(threading.Thread):
    """Runs a model over and over, and keeps every answer that is not the first one."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model, self.inputs = model, served_inputs(3, 7)
        self.inputs["mask"][0, 4:] = True
        self.expected = self.answer()
        self.calls, self.wrong, self.is_over = 0, [], False

    def answer(self) -> torch.Tensor:
        with torch.no_grad():
            return self.model(**self.inputs)

    def run(self) -> None:
        while not self.is_over:
            self.calls += 1
            try:
                answer = self.answer()
                is_right = answer.dtype == self.expected.dtype and torch.equal(answer, self.expected)
                self.wrong += [] if is_right else [answer]
            except BaseException as error:
                self.wrong.append(error)


def state_of_the_process() -> dict[str, Any]:
    """What an export must not change, as far as it can be compared."""
    root = logging.getLogger()
    return {
        "warnings": (id(warnings.filters), list(warnings.filters), warnings.showwarning),
        "loggers": (root.level, list(root.handlers), logging.Logger.callHandlers),
        "random": (torch.get_rng_state().tolist(), np.random.get_state()[1].tolist(), random.getstate()),
        "collector": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()),
        "signals": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "system": (dict(os.environ), Path.cwd(), sys.stdout, sys.stderr, sys.stdin, list(sys.path)),
        "torch": (torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_num_threads()),
        "threads": threading.active_count(),
    }


def test_four_exports_at_once_give_the_serial_files_while_a_fifth_thread_serves_the_model() -> None:
    torch.manual_seed(0)
    models = [(served(), served_inputs), (Recurrent(), sequences), (Looped(), sequences), (Computed(), sequences)]
    at_once, most = set[int](), 0

    def job(model: nn.Module, inputs: Any) -> bytes:
        def progress(stage: str, done: int, total: int) -> None:
            nonlocal most
            at_once.add(threading.get_ident())
            most = max(most, len(at_once))

        result = anyshape.export(model, inputs, where=SMALL, progress=progress)
        at_once.discard(threading.get_ident())
        return result.model_proto.SerializeToString(deterministic=True)

    serial = [job(*each) for each in models]
    assert most == 1
    server = Server(models[0][0])
    before = state_of_the_process()
    server.start()
    together = run_together(*(lambda each=each: job(*each) for each in models))
    server.is_over = True
    server.join()
    assert together == serial and most > 1
    assert server.calls > 20 and server.wrong == []
    assert state_of_the_process() == before


class Changes(nn.Module):
    """Changes what a process has, and itself."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))
        self.seen: list[Any] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.set_grad_enabled(False)
        warnings.simplefilter("ignore")
        os.environ["ANYSHAPE_TEST"] = "set"
        os.chdir("/")
        sys.path.append("/changed")
        gc.freeze()
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        self.seen.append(1)
        return x * 2


def test_what_the_model_changes_ends_with_the_process_of_the_export() -> None:
    load_libraries()  # torch sets a variable of the environment when parts of it are loaded
    model, before = Changes(), state_of_the_process()
    try:
        anyshape.export(model, lambda n=3: torch.randn(n), where=["1 <= n <= 4"])
    except anyshape.PromiseBroken as broken:  # it may be refused: that is not what is looked at here
        assert broken.finding.code != "AS160"
    assert state_of_the_process() == before
    assert model.seen == [] and model.training


def test_a_module_in_training_mode_stays_in_it_during_the_export() -> None:
    model = Served().train()
    seen: set[bool] = set()
    anyshape.export(
        model,
        served_inputs,
        where=SMALL,
        strategy="symbolic",
        progress=lambda *_: seen.update(part.training for part in model.modules()),
    )
    assert seen == {True}


MANY_THREADS = """
import torch, anyshape
torch.set_num_threads(4)
x = torch.randn(1000, 1000)
(x @ x).exp().sum()
class Insists(torch.nn.Linear):
    def forward(self, x):
        if self.weight.dtype != torch.float32:
            raise TypeError("single precision")
        return super().forward(x).cumsum(0)
print(anyshape.export(Insists(600, 600), lambda n=300: torch.randn(n, 600), where=["1 <= n <= 400"], time_limit=200))
"""


@pytest.mark.slow
def test_a_caller_that_has_computed_with_several_threads_may_export() -> None:
    """Its threads do not survive the fork: what waits for them waits forever."""
    command = [sys.executable, "-c", MANY_THREADS]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "4"})
    assert done.stdout.startswith("kept"), done.stderr


def test_without_a_process_of_its_own_an_export_that_waits_reports_it() -> None:
    stages: list[str] = []
    told = threading.Event()

    def progress(stage: str, done: int, total: int) -> None:
        stages.append(stage)
        told.set()

    def export() -> None:
        anyshape.export(Looped(), sequences, where=SMALL, progress=progress, isolate=False)

    waiting = threading.Thread(target=export)
    with exporting(Looped()):
        waiting.start()
        assert told.wait(30)
        assert stages == [WAITING]
    waiting.join()
    assert len(stages) > 1


def test_an_export_inside_an_export_of_the_same_thread_does_not_wait() -> None:
    with exporting(Looped()), exporting(Looped()):
        pass


class SwitchesGradients(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.set_grad_enabled(False)
        return x * 2


@pytest.mark.parametrize("isolate", [None, False])
def test_gradients_are_recorded_after_an_export_as_before(isolate: bool | None) -> None:
    assert torch.is_grad_enabled()
    anyshape.export(SwitchesGradients(), lambda n=3: torch.randn(n), isolate=isolate)
    assert torch.is_grad_enabled()
