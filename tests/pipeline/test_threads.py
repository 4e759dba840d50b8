"""Exports in several threads take turns, and other threads notice nothing of them."""

from __future__ import annotations

import random
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from tests.pipeline.served import Served, served, served_inputs
from torch import nn

import anyshape
from anyshape.intercept.turns import WAITING, exporting

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


def test_four_exports_at_once_give_the_serial_files_while_a_fifth_thread_serves_the_model() -> None:
    torch.manual_seed(0)
    models = [(served(), served_inputs), (Recurrent(), sequences), (Looped(), sequences), (Computed(), sequences)]

    def job(model: nn.Module, inputs: Any) -> bytes:
        result = anyshape.export(model, inputs, where=SMALL)
        return result.model_proto.SerializeToString(deterministic=True)

    serial = [job(*each) for each in models]
    filters, before = warnings.filters, list(warnings.filters)
    server = Server(models[0][0])
    states = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    server.start()
    together = run_together(*(lambda each=each: job(*each) for each in models))
    server.is_over = True
    server.join()
    assert together == serial
    assert server.calls > 20 and server.wrong == []
    assert warnings.filters is filters and warnings.filters == before
    after = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    assert torch.equal(after[0], states[0]) and after[1:] == states[1:]


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


def test_an_export_that_waits_reports_it() -> None:
    stages: list[str] = []
    told = threading.Event()

    def progress(stage: str, done: int, total: int) -> None:
        stages.append(stage)
        told.set()

    waiting = threading.Thread(target=lambda: anyshape.export(Looped(), sequences, where=SMALL, progress=progress))
    with exporting(Looped()):
        waiting.start()
        assert told.wait(30)
        assert stages == [WAITING]
    waiting.join()
    assert len(stages) > 1


def test_an_export_inside_an_export_of_the_same_thread_does_not_wait() -> None:
    with exporting(Looped()), exporting(Looped()):
        pass


def test_a_child_that_was_forked_during_an_export_may_export() -> None:
    import os

    import pytest

    if not hasattr(os, "fork"):
        pytest.skip("no fork on this system")
    done = threading.Event()
    entered = threading.Event()

    def hold() -> None:
        with exporting(None):
            entered.set()
            done.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    entered.wait(30)
    child = os.fork()
    if child == 0:
        threading.Timer(20, os._exit, (8,)).start()
        with exporting(None):
            os._exit(7)
    done.set()
    holder.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


class SwitchesGradients(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.set_grad_enabled(False)
        return x * 2


def test_gradients_are_recorded_after_an_export_as_before(tmp_path: Any) -> None:
    assert torch.is_grad_enabled()
    anyshape.export(SwitchesGradients(), lambda n=3: torch.randn(n), tmp_path / "m.onnx")
    assert torch.is_grad_enabled()
