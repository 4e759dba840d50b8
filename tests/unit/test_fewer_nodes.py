"""Operations that give back their input leave no node in the file, and the answers stay the same."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import anyshape
from anyshape.optimize.plain_nodes import fixed_sizes, simplify_nodes
from anyshape.runtime.session import Session


class Masked(nn.Module):
    """A mask as transformers makes it: by indices that count up, joined with what is True everywhere."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        batch, seq = x.shape[0], x.shape[1]
        rows = torch.arange(batch)[:, None, None, None]
        columns = (torch.arange(seq) + 0)[None, None, None, :]
        steps = torch.arange(seq)[None, None, :, None]
        seen = torch.ones((), dtype=torch.bool) & (steps >= 0) & mask.bool()[rows, columns]
        heads = x.view(batch, seq, 2, -1).transpose(1, 2)
        return F.scaled_dot_product_attention(heads, heads, heads, seen.expand(batch, -1, seq, seq)).transpose(1, 2)


def masked_inputs(batch: int = 2, seq: int = 5) -> dict[str, Any]:
    return {"x": torch.randn(batch, seq, 8), "mask": torch.ones(batch, seq, dtype=torch.int64)}


def operators_of(model: ir.Model) -> Counter[str]:
    return Counter(node.op_type for node in ir.traversal.RecursiveGraphIterator(model.graph))


def test_a_mask_of_transformers_is_a_few_nodes() -> None:
    result = anyshape.export(Masked(), masked_inputs, enforce="load", where=["batch <= 4", "seq <= 8"])
    found = operators_of(result.model)
    assert not any(found[each] for each in ("GatherND", "Range", "And", "GreaterOrEqual", "Expand", "Shape", "Concat"))
    assert found["Unsqueeze"] == 1 and found["Where"] == 3  # two of them of the mask alone, for all layers


def test_a_hidden_row_gives_zeros(tmp_path) -> None:
    path = tmp_path / "m.onnx"
    anyshape.export(Masked(), masked_inputs, path, where=["batch <= 4", "seq <= 8"])
    inputs = masked_inputs(3, 4)
    inputs["mask"][1] = 0
    inputs["mask"][2, 1:] = 0
    expected = Masked()(**inputs).numpy()
    (actual,) = Session(path).run({name: value.numpy() for name, value in inputs.items()})
    assert not expected[1].any()
    np.testing.assert_allclose(actual, expected, atol=1e-6)


class TrueMask(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seq = x.shape[-2]
        mask = (torch.arange(seq) >= 0)[None, :].expand(seq, -1)
        return F.scaled_dot_product_attention(x, x, x, mask)


def test_a_mask_that_hides_nothing_is_left_out() -> None:
    inputs = lambda b=2, n=5: torch.randn(b, 2, n, 4)  # noqa: E731
    result = anyshape.export(TrueMask(), inputs, where=["b <= 4", "n <= 8"], enforce="load")
    assert not any(operators_of(result.model)[each] for each in ("Where", "ReduceMax", "GreaterOrEqual"))


class ShortMask(nn.Module):
    """`>= 1` is not True everywhere: the first key is hidden."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(x, x, x, (torch.arange(x.shape[-2]) >= 1)[None, :])


def test_a_mask_that_hides_something_stays() -> None:
    result = anyshape.export(ShortMask(), lambda b=2, n=5: torch.randn(b, 2, n, 4), where=["b <= 4", "n <= 8"])
    assert operators_of(result.model)["GreaterOrEqual"] == 1


class Reversed(nn.Module):
    """Indices that do not count up by one along their own axis."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[torch.arange(x.shape[0])[None, :], torch.arange(x.shape[1]).flip(0)[:, None]]


def test_other_indices_stay_indices(tmp_path) -> None:
    path = tmp_path / "m.onnx"
    anyshape.export(Reversed(), lambda a=2, b=5: torch.randn(a, b), path, where=["a <= 4", "b <= 8"])
    x = torch.randn(3, 4)
    (actual,) = Session(path).run({"x": x.numpy()})
    np.testing.assert_array_equal(actual, Reversed()(x).numpy())


class SwappedCounts(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[torch.arange(x.shape[0])[None, :], torch.arange(x.shape[1])[:, None]]


def test_counts_in_another_order_are_no_view(tmp_path) -> None:
    path = tmp_path / "m.onnx"
    anyshape.export(SwappedCounts(), lambda a=2, b=5: torch.randn(a, b), path, where=["a <= 4", "b <= 8"])
    x = torch.randn(3, 4)
    (actual,) = Session(path).run({"x": x.numpy()})
    np.testing.assert_array_equal(actual, x.numpy().T)


TEXT = """
<ir_version: 10, opset_import: ["" : 18]>
g (float[batch, seq, 8] x) => (float[batch, seq, 2, 4] y)
<int64[2] first = {0, 2}, int64[1] second = {1}, int64[1] zero = {0}, int64[1] end = {9223372036854775807}>
{
    a = Transpose <perm = [0, 2, 1]> (x)
    b = Transpose <perm = [0, 2, 1]> (a)
    c = Unsqueeze (b, first)
    d = Unsqueeze (c, second)
    e = Slice (d, zero, end, zero)
    y = Relu (e)
}
"""


def test_transposes_and_unsqueezes_merge() -> None:
    model = ir.from_onnx_text(TEXT)
    simplify_nodes(model)
    relu = model.graph[-1]
    unsqueeze = relu.inputs[0].producer()
    assert unsqueeze.op_type == "Unsqueeze" and unsqueeze.inputs[0].name == "x"
    axes = unsqueeze.inputs[1].const_value.numpy().tolist()
    x = np.zeros((2, 3, 8))
    assert np.expand_dims(x, tuple(axes)).shape == np.expand_dims(np.expand_dims(x, (0, 2)), 1).shape


RESHAPE = """<ir_version: 10, opset_import: ["" : 18]>
g (float[{before}] x, int64[n] sizes) => (float[{after}] y) {{ y = Reshape(x, sizes) }}"""


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("batch, seq, 8", "batch, seq, 2, 4", [0, 0, 2, 4]),
        ("batch, seq, 8", "batch, k, 8", [0, -1, 8]),
        ("batch, k, 8", "batch, k, 2, m", None),  # k may be 0, and -1 beside it would be undefined
        ("batch, seq, 8", "m, 8", [-1, 8]),
        ("batch, seq, 8", "m, k", None),
    ],
)
def test_sizes_of_a_reshape_are_constants_where_they_are_exact(before, after, expected) -> None:
    model = ir.from_onnx_text(RESHAPE.format(before=before, after=after))
    assert fixed_sizes(model.graph[0], {"batch", "seq"}) == expected
