"""Six threads export and four serve: the files are those of serial exports, and nothing of the process changes.

python benchmarks/process/run_threads.py [SECONDS]
python benchmarks/process/run_threads.py busy [EXPORTS]     beside busy OpenMP, onnxruntime and gRPC (Ray) threads
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import random
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import anyshape


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 4, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0]


class Loop(nn.Module):
    def forward(self, x):
        for step in range(x.shape[1]):
            x = x + step
        return x


class Computed(nn.Module):
    def forward(self, x):
        return x[:, : int(x.shape[1] * 0.5) + 1] * len(x)


def sequences(batch=2, seq=5):
    return torch.randn(batch, seq, 4)


def models() -> list[nn.Module]:
    torch.manual_seed(0)
    attention = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
    return [Recurrent(), Loop(), Computed(), attention, Recurrent(), nn.Linear(4, 4)]


def export(model: nn.Module) -> bytes:
    result = anyshape.export(model, sequences, where=["batch <= 4", "seq <= 8"])
    return bytes(result.model_proto.SerializeToString(deterministic=True))


def state(found: list[nn.Module]) -> dict[str, Any]:
    return {
        "filters": list(warnings.filters),
        "loggers": logging.Logger.callHandlers,
        "collector": (gc.get_threshold(), gc.get_freeze_count(), gc.isenabled()),
        "handlers": [signal.getsignal(number) for number in signal.valid_signals()],
        "environment": dict(os.environ),
        "folder": Path.cwd(),
        "streams": (sys.stdout, sys.stderr),
        "random": (torch.get_rng_state().tolist(), np.random.get_state()[1].tolist(), random.getstate()),
        "torch": (torch.get_num_threads(), torch.get_default_dtype(), torch.is_grad_enabled()),
        "modes": [part.training for model in found for part in model.modules()],
    }


def serve_and_export(seconds: float) -> int:
    found = models()
    serial = [export(model) for model in found]
    before, end = state(found), time.monotonic() + seconds
    bad: list[str] = []
    counts = [0] * len(found)
    served = [0] * 4

    def run_exports(place: int) -> None:
        while time.monotonic() < end:
            try:
                if export(found[place]) != serial[place]:
                    bad.append(f"export {place} differs")
            except BaseException as error:
                bad.append(f"export {place}: {error!r}"[:300])
            counts[place] += 1

    def run_server(place: int) -> None:
        x = torch.randn(8, 16, 4, generator=torch.Generator().manual_seed(place))
        with torch.no_grad():
            expected = found[3](x)
            while time.monotonic() < end:
                if not torch.equal(found[3](x), expected):
                    bad.append(f"server {place} differs")
                served[place] += 1

    threads = [threading.Thread(target=run_exports, args=(place,)) for place in range(len(found))]
    threads += [threading.Thread(target=run_server, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after = state(found)
    bad += [f"{name} changed" for name in before if before[name] != after[name]]
    print(f"exports {counts}, calls served {served}, bad {bad[:5]}")
    return len(bad)


def beside_busy_threads(count: int) -> int:
    import onnxruntime

    torch.set_num_threads(4)
    model = nn.Linear(64, 64)
    path = "/tmp/busy.onnx"
    anyshape.export(model, lambda n=3: torch.randn(n, 64), path, overwrite=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    stop = threading.Event()

    def multiply() -> None:
        x = torch.randn(500, 500)
        while not stop.wait(0.01):
            torch.mm(x, x)

    def run_session() -> None:
        feeds = {session.get_inputs()[0].name: np.zeros((512, 64), np.float32)}
        while not stop.wait(0.01):
            session.run(None, feeds)

    with contextlib.ExitStack() as around:
        with contextlib.suppress(ImportError):
            import ray

            ray.init(address="local", num_cpus=1, log_to_driver=False, logging_level="error", include_dashboard=False)
            around.callback(ray.shutdown)

            def ask() -> None:
                while not stop.wait(0.01):
                    ray.get(ray.put(1))

            threading.Thread(target=ask, daemon=True).start()
        for work in (multiply, run_session, multiply):
            threading.Thread(target=work, daemon=True).start()
        slowest = 0.0
        for _ in range(count):
            began = time.monotonic()
            anyshape.export(model, lambda n=3: torch.randn(n, 64), verify="quick")
            slowest = max(slowest, time.monotonic() - began)
        stop.set()
    print(f"{count} exports beside busy threads, the slowest {slowest:.1f} s")
    return 0


def main() -> int:
    warnings.simplefilter("ignore", anyshape.NarrowedWarning)
    given = sys.argv[1:]
    if given[:1] == ["busy"]:
        return beside_busy_threads(int((*given[1:], 200)[0]))
    return serve_and_export(float((*given, 300)[0]))


if __name__ == "__main__":
    sys.exit(main())
