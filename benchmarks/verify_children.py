"""Is a second child process a gain, and is it left alone where it is none?

    python benchmarks/verify_children.py      writes benchmarks/results/verify_children.json

A small model, where starting a child costs more than it gives, and a larger one. Each is verified with one child alone and
with as many as there are cores, in turn; the verdicts must be the same.
"""

from __future__ import annotations

import dataclasses
import json
import platform
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import torch
from torch import nn

import anyshape
from anyshape.inputs import declare, flatten_outputs
from anyshape.runtime.process import usable_cores
from anyshape.verify import Reference, VerifyOptions, run, verify
from anyshape.verify.request import request_for

RESULTS = Path(__file__).parent / "results" / "verify_children.json"
REPEATS = 3
WHERE = ["batch <= 8", "seq <= 128"]
SIZES = [{"batch": batch, "seq": seq} for batch in (1, 3, 5, 8) for seq in (1, 7, 32, 64, 100, 128)]


class Encoder(nn.Module):
    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
        self.embed = nn.Embedding(1000, width)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.encoder(self.embed(ids))


def ids(batch: int = 2, seq: int = 16) -> torch.Tensor:
    return torch.randint(0, 1000, (batch, seq))


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    figures = {"small": measured(Encoder(1, 16)), "large": measured(Encoder(4, 384))}
    versions = {"python": platform.python_version(), "torch": torch.__version__, "onnxruntime": onnxruntime.__version__}
    RESULTS.write_text(json.dumps({"cores": usable_cores(), **figures, "versions": versions}, indent=1) + "\n")
    print(RESULTS.read_text())


def measured(module: nn.Module) -> dict[str, Any]:
    module.eval()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        anyshape.export(module, ids, path, where=WHERE, budget=5.0)
        seconds: dict[int, list[float]] = {1: [], usable_cores(): []}
        hired: dict[int, int] = {}
        for _ in range(REPEATS):
            for most, found in seconds.items():
                spent, hired[most] = seconds_of(module, path, most)
                found.append(spent)
    return {
        f"at most {most} children": {"s": round(statistics.median(found), 2), "children": hired[most]}
        for most, found in seconds.items()
    }


def seconds_of(module: nn.Module, path: Path, most: int) -> tuple[float, int]:
    """How long it takes, and how many children there were."""
    declared = declare(module, ids, where=WHERE)
    hire, children = run._runner, []
    run._most_children = lambda request, path: most  # type: ignore[assignment]
    run._runner = lambda *given: children.append(hire(*given)) or children[-1]  # type: ignore[assignment]
    try:
        with Reference(module, flatten_outputs) as reference:
            request = request_for(path, [each.name for each in onnx.load(path).graph.output], declared, reference)
            began = time.perf_counter()
            verdict = verify(dataclasses.replace(request, sizes=SIZES, options=VerifyOptions(budget_s=300.0)))
            spent = time.perf_counter() - began
    finally:
        run._runner = hire
    assert verdict.passed and len(verdict.tried) == len(SIZES)
    return spent, len(children)


if __name__ == "__main__":
    main()
