"""How export time grows with layers (2 to 32) and with dims (1 to 12).

    python benchmarks/speed/growth.py layers 8        prints one line of JSON: CPU and wall seconds of anyshape and of dynamo
    python benchmarks/speed/growth.py dims 12

A small export of something else comes first, so that loading libraries is no part of the figures.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from one_export import measure
from torch import nn
from zoo_models import Case, bert

LAYERS = (2, 4, 8, 16, 32)
DIMS = (1, 2, 4, 8, 12)


class Rows(nn.Module):
    """Several tensors, each with a first axis of its own size, through one linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 16)

    def forward(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        return [self.linear(each).relu() for each in tensors]


def rows_of(names: list[str]) -> Callable[..., tuple[Any, ...]]:
    """A function of as many sizes as there are names, each the length of one tensor. The model is the same for any number of
    names: the other tensors have fixed lengths."""
    parameters = ", ".join(f"{name}={index + 2}" for index, name in enumerate(names))
    lengths = [*names, *(str(index + 2) for index in range(len(names), max(DIMS)))]
    made = ", ".join(f"torch.randn({length}, 16)" for length in lengths)
    scope: dict[str, Any] = {"torch": torch}
    exec(f"def inputs({parameters}):\n    return ([{made}],)", scope)
    return scope["inputs"]


def tokens(batch: int = 2, seq: int = 9) -> tuple[Any, ...]:
    return torch.randint(0, 1000, (batch, seq)), torch.ones(batch, seq, dtype=torch.int64)


def case_of(kind: str, count: int) -> Case:
    if kind == "layers":
        sizes = ({"batch": 1, "seq": 8}, {"batch": 3, "seq": 17})
        return Case(
            name="layers", build=bert(count, 128, 4), inputs=tokens, sizes=sizes, where=("batch <= 8", "seq <= 64")
        )
    names = [f"d{index}" for index in range(count)]
    sizes = tuple({name: start + index for index, name in enumerate(names)} for start in (3, 20))
    return Case(
        name="dims", build=Rows, inputs=rows_of(names), sizes=sizes, where=tuple(f"{name} <= 64" for name in names)
    )


def main() -> None:
    kind, count = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warm = Case(name="warm", build=nn.Identity, inputs=lambda n=3: (torch.randn(n, 4),), sizes=({"n": 2}, {"n": 5}))
    case = case_of(kind, count)
    module = case.build().eval()
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for exporter in ("anyshape", "dynamo"):
            measure(warm, exporter, nn.ReLU(), Path(folder) / "warm.onnx")
            figures[exporter] = measure(case, exporter, module, Path(folder) / "m.onnx")
    print(json.dumps({"count": count} | figures))


if __name__ == "__main__":
    main()
