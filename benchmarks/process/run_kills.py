"""Kill one process of an export, at a random moment; the file has to be the same as without, byte for byte.

python benchmarks/process/run_kills.py [COUNT]     so many kills, shared among 20 models

An error that names the kill is no failure; another file or verdict is.
"""

from __future__ import annotations

import contextlib
import random
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import nn

import anyshape


class Loop(nn.Module):
    def forward(self, x):
        for step in range(x.shape[1]):
            x = x + step
        return x


class Branch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 16)

    def forward(self, x):
        return self.linear(x) * 2 if x.shape[0] > 3 else self.linear(x)


def sequences(batch=3, seq=5):
    return torch.randn(batch, seq, 16)


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.network = kind(16, 16, batch_first=True)

    def forward(self, x):
        return self.network(x)[0]


class Stepping(nn.Module):
    def __init__(self, kind: type[nn.RNNCellBase]) -> None:
        super().__init__()
        self.cell = kind(16, 16)

    def forward(self, x):
        state = torch.zeros_like(x[:, 0])
        for step in x.unbind(1):
            state = self.cell(step, state)
        return state


class Of(nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


MODELS = {
    "linear": nn.Linear(16, 16),
    "branch": Branch(),
    "loop": Loop(),
    "attention": nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval(),
    "lstm": Recurrent(nn.LSTM),
    "gru": Recurrent(nn.GRU),
    "cells": Stepping(nn.GRUCell),
    "convolution": Of(lambda x: torch.conv1d(x.transpose(1, 2), torch.ones(4, 16, 3), padding=1)),
    "flattened": Of(lambda x: x.reshape(x.shape[0], -1).sum(1)),
    "pairs": Of(lambda x: x[:, :, None] - x[:, None, :]),
    "mask": Of(lambda x: x + torch.triu(torch.full((x.shape[1], x.shape[1]), -9.0), 1).sum(0)[:, None]),
    "positions": Of(lambda x: x + torch.arange(x.shape[1])[:, None] / x.shape[1]),
    "numbers": Of(lambda x: x[:, : int(x.shape[1] * 0.5) + 1] * int(x.shape[0])),
    "text": Of(lambda x: x * len(str(x.shape[1] * 3))),
    "two branches": Of(lambda x: (x * 2 if x.shape[1] % 2 else x + 1) if x.shape[0] > 2 else x - 1),
    "values": Of(lambda x: x * 2 if x.sum() > 0 else x - 1),
    "appended": Of(lambda x: torch.stack([x[:, step] * step for step in range(x.shape[1])], 1)),
    "normalized": Of(lambda x: torch.nn.functional.layer_norm(x, (16,)).softmax(1)),
    "cumulated": Of(lambda x: x.cumsum(1).flip(1)),
    "selected": Of(lambda x: torch.where(x > 0, x, x.exp()).amax(1)),
}


def export(model: nn.Module, path: Path | None = None) -> bytes:
    result = anyshape.export(model, sequences, path, where=["batch <= 8", "seq <= 9"])
    return bytes(result.model_proto.SerializeToString(deterministic=True))


class Killer(threading.Thread):
    """Kills one descendant of this process after some time."""

    def __init__(self, after: float, choice: random.Random) -> None:
        super().__init__()
        self.after, self.choice = after, choice
        self.victim = ""

    def run(self) -> None:
        time.sleep(self.after)
        with contextlib.suppress(psutil.Error):
            found = psutil.Process().children(recursive=True)
            if found:
                victim = self.choice.choice(found)
                self.victim = " ".join(victim.cmdline())[-40:]
                victim.kill()


def outcome(model: nn.Module, expected: bytes, took: float, seed: int, folder: Path) -> tuple[str, Any]:
    choice = random.Random(seed)
    killer = Killer(choice.uniform(0, took), choice)
    killer.start()
    path = folder / "m.onnx"
    path.unlink(missing_ok=True)
    try:
        made = export(model, path)
        found = "same" if made == expected and path.is_file() else "OTHER FILE"
    except anyshape.PromiseBroken as error:
        found = "error" if error.finding.code == "AS160" else f"OTHER VERDICT {error.finding.code}"
    killer.join()
    left = [each.pid for each in psutil.Process().children(recursive=True) if each.status() != psutil.STATUS_ZOMBIE]
    files = sorted(each.name for each in folder.iterdir() if each.name != "m.onnx")
    return found, (left or files or "", killer.victim)


def main() -> int:
    warnings.simplefilter("ignore")
    count, bad = int((*sys.argv[1:], 40)[0]), 0
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as name:
        tempfile.tempdir = str(Path(name, "temporary"))
        Path(tempfile.tempdir).mkdir()
        folder = Path(name, "out")
        folder.mkdir()
        for label, model in MODELS.items():
            torch.manual_seed(0)
            export(model)
            began = time.monotonic()
            expected = export(model)
            took = time.monotonic() - began
            for seed in range(count // len(MODELS)):
                found, (left, victim) = outcome(model, expected, took, seed, folder)
                left = left or [
                    each.name for each in Path(tempfile.tempdir).iterdir() if each.name.startswith("anyshape")
                ]
                counts[found] = counts.get(found, 0) + 1
                if found not in ("same", "error") or left:
                    bad += 1
                    print(f"{label} {seed}: {found}, left {left}, killed {victim}", flush=True)
    print(counts, f"{bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
