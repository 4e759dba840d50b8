"""How long does anyshape take beside torch.onnx.export, on the same models in the same run?

    python benchmarks/against_torch.py        writes benchmarks/results/against_torch.json

Both start warm (imports and one export of another model done). For anyshape the time is given twice: to the file alone
(capture and translation, what torch does) and with everything that torch does not do: exploring the module, comparing the
file at some thirty sizes.
"""

from __future__ import annotations

import contextlib
import io
import json
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

import anyshape

RESULTS = Path(__file__).parent / "results" / "against_torch.json"
REPEATS = 3


class Encoder(nn.Module):
    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
        self.embed = nn.Embedding(1000, width)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return self.encoder(self.embed(ids), src_key_padding_mask=mask)


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        blocks = [nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()) for _ in range(8)]
        self.stem, self.blocks = nn.Conv2d(3, 16, 3, 2, 1), nn.ModuleList(blocks)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        y = self.stem(image)
        for block in self.blocks:
            y = y + block(y)
        return y.mean((2, 3))


def ids_and_mask(batch: int = 3, seq: int = 7) -> dict[str, torch.Tensor]:
    return {"ids": torch.randint(0, 1000, (batch, seq)), "mask": torch.zeros(batch, seq, dtype=torch.bool)}


def image(batch: int = 2, h: int = 20, w: int = 24) -> dict[str, torch.Tensor]:
    return {"image": torch.randn(batch, 3, h, w)}


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[..., dict[str, torch.Tensor]], dict[str, Any]]] = {
    "linear": (lambda: nn.Linear(10, 5), lambda batch=3: {"input": torch.randn(batch, 10)}, {"input": (0,)}),
    "encoder, 2 layers of 64": (lambda: Encoder(2, 64), ids_and_mask, {"ids": (0, 1), "mask": (0, 1)}),
    "encoder, 6 layers of 256": (lambda: Encoder(6, 256), ids_and_mask, {"ids": (0, 1), "mask": (0, 1)}),
    "convolutions, 8 blocks": (Convolutions, image, {"image": (0, 2, 3)}),
}


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        answer = call()
    return time.perf_counter() - began, answer


def by_torch(
    module: nn.Module, inputs: Callable[..., dict[str, torch.Tensor]], axes: dict[str, tuple[int, ...]]
) -> float:
    example = inputs()
    dynamic = {name: dict.fromkeys(axes[name], torch.export.Dim.DYNAMIC) for name in example}
    return timed(
        lambda: torch.onnx.export(module, (), kwargs=example, dynamic_shapes=dynamic, dynamo=True, verbose=False)
    )[0]


def by_anyshape(module: nn.Module, inputs: Callable[..., dict[str, torch.Tensor]]) -> tuple[float, float]:
    stages: list[tuple[str, float]] = []

    def listen(stage: str, done: int, total: int) -> None:
        if not stages or stages[-1][0] != stage:
            stages.append((stage, time.perf_counter()))

    whole, _ = timed(lambda: anyshape.export(module, inputs, progress=listen))
    start = next(at for stage, at in stages if stage.startswith("capturing"))
    end = next(at for stage, at in stages if stage == "comparing")
    return end - start, whole


def main() -> None:
    rows = []
    by_torch(nn.Linear(4, 4).eval(), lambda batch=3: {"input": torch.randn(batch, 4)}, {"input": (0,)})
    by_anyshape(nn.Linear(4, 4).eval(), lambda batch=3: {"input": torch.randn(batch, 4)})
    for name, (build, inputs, axes) in MODELS.items():
        module = build().eval()
        torch_s = statistics.median(by_torch(module, inputs, axes) for _ in range(REPEATS))
        runs = [by_anyshape(module, inputs) for _ in range(REPEATS)]
        file_s, whole_s = (statistics.median(run[index] for run in runs) for index in (0, 1))
        rows.append(
            {"model": name, "torch.onnx.export": torch_s, "anyshape, file": file_s, "anyshape, verified": whole_s}
        )
        print(
            f"{name:28} torch {torch_s:6.2f} s   anyshape: file {file_s:6.2f} s, verified {whole_s:6.2f} s", flush=True
        )
    versions = {"torch": torch.__version__, "python": platform.python_version(), "machine": platform.machine()}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(
        json.dumps({"versions": versions, "threads": torch.get_num_threads(), "rows": rows}, indent=2) + "\n"
    )


if __name__ == "__main__":
    main()
