"""Models for which only some values tell a wrong file from a right one: none is kept and wrong, nearly all are kept.

The judge is apart from verification: it runs the file in onnxruntime, on masks and numbers of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from masked_models import MASKED, WIDTH
from signed_models import SIGNED
from torch import nn

import anyshape

REFUSED = ("positions",)  # by a promise that is not kept, with its reason
NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0)


class Function(nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.function = SIGNED[name]

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        return self.function(x, y)


def hidden_patterns(batch: int, length: int) -> Iterator[torch.Tensor]:
    """Random, left-aligned, right-aligned; rows without padding and rows of nothing else among them."""
    random = torch.Generator().manual_seed(1)
    for _ in range(8):
        yield torch.rand(batch, length, generator=random) > 0.5
        lengths = torch.randint(0, length + 1, (batch, 1), generator=random)
        yield torch.arange(length) >= lengths
        yield torch.arange(length) < lengths


@cache
def wrong_masks(name: str) -> list[str] | None:
    """The patterns at which a kept file is wrong; None where the export was refused."""
    row = MASKED[name]
    torch.manual_seed(0)
    module = row.module().eval()

    def inputs(b: int = 2, t: int = 5) -> dict[str, torch.Tensor]:
        hidden = torch.zeros(b, t, dtype=torch.bool)
        hidden[0, t // 2 + 1 :] = True
        return {"x": torch.randn(b, t, WIDTH), "mask": row.as_mask(hidden)}

    try:
        result = anyshape.export(module, inputs, where=["t >= 2"])
    except anyshape.PromiseBroken:
        return None
    x = torch.randn(4, 6, WIDTH)
    calls = [{"x": x, "mask": row.as_mask(hidden)} for hidden in hidden_patterns(4, 6)]
    return differences(result, module, calls)


@cache
def wrong_numbers(name: str) -> list[str] | None:
    try:
        result = anyshape.export(Function(name), lambda b=2, n=5: {"x": torch.randn(b, n), "y": torch.randn(b, n)})
    except anyshape.PromiseBroken:
        return None
    pairs = torch.tensor(list(product(NUMBERS, NUMBERS)))
    calls = [{"x": pairs[None, :, 0], "y": pairs[None, :, 1]}, {"x": pairs[:, :1], "y": pairs[:, 1:]}]
    return differences(result, Function(name), calls)


def differences(result: anyshape.Export, module: nn.Module, calls: list[dict[str, torch.Tensor]]) -> list[str]:
    assert result.is_kept
    session = onnxruntime.InferenceSession(result.model_proto.SerializeToString())
    found = []
    for call in calls:
        try:
            with torch.no_grad():
                expected = module(**call)
        except Exception:  # eager refuses these values
            continue
        actual = session.run(None, {name: tensor.numpy() for name, tensor in call.items()})
        answers = expected if isinstance(expected, tuple) else (expected,)
        for one, other in zip(answers, actual, strict=True):
            if not np.allclose(one.numpy(), other, rtol=1e-4, atol=1e-5, equal_nan=True):
                found.append(f"{call}: {one} is {other}")
    return found


@pytest.mark.parametrize("name", MASKED)
@pytest.mark.long_table
def test_no_file_with_a_mask_is_kept_and_wrong(name: str) -> None:
    found = wrong_masks(name)
    assert not found
    assert found is not None or name in REFUSED


@pytest.mark.parametrize("name", SIGNED)
@pytest.mark.long_table
def test_no_file_with_signs_and_zeros_is_kept_and_wrong(name: str) -> None:
    found = wrong_numbers(name)
    assert not found
    assert found is not None
