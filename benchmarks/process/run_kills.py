"""Kill one process of an export, at a random moment; the file has to be the same as without, byte for byte.

python benchmarks/process/run_kills.py [COUNT]     an error that names the kill is no failure; another file or verdict is
"""

from __future__ import annotations

import contextlib
import random
import sys
import tempfile
import threading
import time
import warnings
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


MODELS = {
    "linear": nn.Linear(16, 16),
    "branch": Branch(),
    "loop": Loop(),
    "attention": nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval(),
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
