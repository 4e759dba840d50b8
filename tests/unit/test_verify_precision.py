"""The narrowest precision on the way to an output: told by the file for each, and only as far as the module says so too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from tests.verify_calls import Call
from torch import nn

from anyshape.verify import Reference
from anyshape.verify.tolerance import SINGLE_FACTOR, roundings, roundings_of_file, roundings_of_module

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
HALF, BRAIN, SINGLE = 2.0**-10, 2.0**-7, 2.0**-23
FILES = {
    "float[n] x => float[n] y": ("y = Exp(x)", [0.0]),
    "of two outputs, that which it reaches": (
        "h = Cast<to = 16>(x) e = Exp(h) y = Cast<to = 1>(e) z = Exp(x)",
        [BRAIN, 0.0],
    ),
    "an input that is only moved": ("h = Cast<to = 10>(x) t = Transpose(h) y = Cast<to = 1>(t)", [0.0]),
    "a computed value that is cast": ("e = Exp(x) h = Cast<to = 10>(e) y = Cast<to = 1>(h)", [HALF]),
    "its shape alone": ("h = Cast<to = 10>(x) e = Exp(h) s = Shape(e) y = Reshape(x, s)", [0.0]),
    "doubles": ("y = Exp(d)", [0.0]),
    "doubles and an attribute": ("y = LeakyRelu<alpha = 0.1>(d)", [SINGLE_FACTOR]),
    "doubles made of singles": ("e = Exp(x) y = Cast<to = 11>(e)", [SINGLE]),
    "inside of a branch": (
        "c = Constant<value = bool {1}>() y = If(c) <"
        "then_branch = t () => (float[n] a) { h = Cast<to = 10>(x) e = Exp(h) a = Cast<to = 1>(e) }, "
        "else_branch = f () => (float[n] b) { b = Exp(x) }>",
        [HALF],
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_tells_for_each_output(name: str, tmp_path: Path) -> None:
    body, expected = FILES[name]
    kind = "double" if name.startswith("doubles") else "float"
    outputs = f"{kind}[n] y" + (", float[n] z" if len(expected) > 1 else "")
    onnx.save(
        onnx.parser.parse_model(f"{HEAD}g (float[n] x, double[n] d) => ({outputs}) {{ {body} }}"), tmp_path / "m.onnx"
    )
    assert list(roundings_of_file(str(tmp_path / "m.onnx"))) == expected


class Through(nn.Module):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, x: torch.Tensor) -> Any:
        return x.to(self.dtype).exp().float()


@pytest.mark.parametrize(
    ("dtype", "epsilon"), [(torch.bfloat16, BRAIN), (torch.float16, HALF), (torch.float32, SINGLE)]
)
def test_a_file_that_rounds_where_the_module_does_not_is_granted_nothing(
    dtype: torch.dtype, epsilon: float, tmp_path: Path
) -> None:
    text = "g (float[n] x) => (float[n] y) { h = Cast<to = 16>(x) e = Exp(h) y = Cast<to = 1>(e) }"
    onnx.save(onnx.parser.parse_model(HEAD + text), tmp_path / "m.onnx")
    call = Call((torch.randn(3),))
    with Reference(Through(dtype), lambda outputs: [("y", outputs)]) as reference:
        assert roundings_of_module(reference, call) == (epsilon,)
        assert roundings(str(tmp_path / "m.onnx"), reference, [call]) == (epsilon,)


class InPlace(nn.Module):
    """One output through half precision, one beside it, one written into memory that half precision has reached."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        narrow = x.half().exp().float()
        sums = torch.zeros_like(x)
        sums[1:] += narrow[1:]
        return narrow + 1, x.exp(), sums.view(-1)


def test_each_output_of_the_module_has_the_rounding_of_its_own_path(tmp_path: Path) -> None:
    text = """g (float[n] x) => (float[n] a, float[n] b, float[n] c) { h = Cast<to = 10>(x) e = Exp(h) a = Cast<to = 1>(e)
      b = Identity(a) c = Identity(a) }"""
    onnx.save(onnx.parser.parse_model(HEAD + text), tmp_path / "m.onnx")
    call = Call((torch.randn(3),))
    with Reference(InPlace(), lambda outputs: list(zip("abc", outputs, strict=True))) as reference:
        assert roundings_of_module(reference, call) == (HALF, SINGLE, HALF)
        assert roundings(str(tmp_path / "m.onnx"), reference, [call]) == (HALF, SINGLE, HALF)
