"""64-bit integers that onnxruntime compares by their halves, or computes by way of doubles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
import torch

import anyshape
from anyshape.records.export import Exported
from anyshape.translate.exact_int64 import compute_exactly
from anyshape.translate.lacking_forms import widen_types

X = np.array([2**31, -(2**31) - 1, 3 * 2**31, 5, -(2**40), 2**32 - 1, 0, 2**63 - 1], np.int64)
Y = np.array([7, -(2**32), 2**32 + 5, 2**31, -(2**40) + 2**31, 0, 2**31, -(2**63)], np.int64)
ROWS: list[tuple[str, Callable[..., Any]]] = [
    ("Max(x, y)", torch.maximum),
    ("Min(x, y)", torch.minimum),
    ("Max(x, y, x)", torch.maximum),
    ("Max(x)", lambda x, y: x),
    ("Sign(x)", lambda x, y: x.sign()),
    ("Relu(x)", lambda x, y: x.relu()),
    ("Clip(x, low, high)", lambda x, y: x.clamp(3, 2**31)),
    ("Clip(x, low)", lambda x, y: x.clamp(min=3)),
    ("Clip(x, , high)", lambda x, y: x.clamp(max=2**31)),
    ("Pow(x, five)", lambda x, y: x**5),
    ("Pow(x, one)", lambda x, y: x),
    ("Mod <fmod = 1> (x, low)", lambda x, y: torch.fmod(x, 3)),
    ("Mod <fmod = 1> (y, five)", lambda x, y: torch.fmod(y, 5)),
]


def written(node: str, dtype: str = "int64") -> ir.Model:
    text = f"""
        <ir_version: 10, opset_import: ["" : 18]>
        g ({dtype}[8] x, {dtype}[8] y) => ({dtype}[8] z)
        <{dtype} low = {{3}}, {dtype} high = {{2147483648}}, {dtype} five = {{5}}, {dtype} one = {{1}}> {{ z = {node} }}
    """
    return ir.from_proto(onnx.parser.parse_model(text))


@pytest.mark.parametrize(("node", "function"), ROWS, ids=[node for node, _ in ROWS])
def test_the_answer_is_that_of_torch(node: str, function: Callable[..., Any]) -> None:
    model = written(node)
    compute_exactly(Exported(model, ("x", "y"), (), 18))
    proto = ir.to_proto(model)
    onnx.checker.check_model(proto, full_check=True)
    (answer,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": X, "y": Y})
    np.testing.assert_array_equal(answer, function(torch.from_numpy(X), torch.from_numpy(Y)).numpy(), strict=True)


DIVIDENDS = [-(2**31), 2**31 - 1, -7, 7, 0, 5, -(2**31), 9]
DIVISORS = [-1, 7, 3, -3, -1, -(2**31), 2**31 - 1, 1]
DIVIDED: list[tuple[str, Callable[..., Any]]] = [
    (
        "Div(x, y)",
        lambda x, y: torch.where(y == -1, -x, torch.div(x, torch.where(y == -1, 1, y), rounding_mode="trunc")),
    ),
    ("Mod(x, y)", torch.remainder),
    ("Mod <fmod = 1> (x, y)", torch.fmod),
]


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize(("node", "function"), DIVIDED, ids=[node for node, _ in DIVIDED])
def test_divisors_may_be_minus_one_and_fail_at_zero(node: str, function: Callable[..., Any], dtype: str) -> None:
    text = f"""
        <ir_version: 10, opset_import: ["" : 18]> g ({dtype}[8] x, {dtype}[8] y) => ({dtype}[8] z) {{ z = {node} }}
    """
    model = ir.from_proto(onnx.parser.parse_model(text))
    compute_exactly(Exported(model, ("x", "y"), (), 18))
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString())
    x, y = (np.array(numbers, dtype) for numbers in (DIVIDENDS, DIVISORS))
    x[0] = np.iinfo(dtype).min
    (answer,) = session.run(None, {"x": x, "y": y})
    np.testing.assert_array_equal(answer, function(torch.from_numpy(x), torch.from_numpy(y)).numpy(), strict=True)
    with pytest.raises(Exception, match="the model refuses these values: RuntimeError: ZeroDivisionError"):
        session.run(None, {"x": x, "y": np.zeros_like(y)})


def test_sums_of_32_bits_wrap_around() -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 18]>
        g (int32[n] x) => (int32[1] z) { z = ReduceSum <keepdims = 1> (x) }
    """
    model = ir.from_proto(onnx.parser.parse_model(text))
    compute_exactly(Exported(model, ("x",), (), 18))
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString())
    assert session.run(None, {"x": np.array([2**31 - 1, 3], np.int32)})[0] == -(2**31) + 2


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8"])
@pytest.mark.parametrize("exponent", [3, 7, 70])
def test_powers_wrap_around_in_every_integer_type(dtype: str, exponent: int) -> None:
    text = f"""
        <ir_version: 10, opset_import: ["" : 18]>
        g ({dtype}[n] x) => ({dtype}[n] z) <int64 by = {{{exponent}}}> {{ z = Pow(x, by) }}
    """
    model = ir.from_proto(onnx.parser.parse_model(text))
    compute_exactly(widen_types(Exported(model, ("x",), (), 18)))
    x = torch.tensor([0, 1, 3, 5, 50, 127], dtype=getattr(torch, dtype))
    (answer,) = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString()).run(None, {"x": x.numpy()})
    np.testing.assert_array_equal(answer, (x**exponent).numpy(), strict=True)


def test_other_types_and_sizes_stay_as_they_are() -> None:
    model = written("Max(x, y)", "float")
    compute_exactly(Exported(model, ("x", "y"), (), 18))
    assert [node.op_type for node in model.graph] == ["Max"]
    text = """
        <ir_version: 10, opset_import: ["" : 18]>
        g (float[n] x) => (int64[1] z) <int64[1] one = {1}> { s = Shape(x)  t = Sub(s, one)  z = Max(t, one) }
    """
    model = ir.from_proto(onnx.parser.parse_model(text))
    for node in model.graph:
        node.outputs[0].dtype = ir.DataType.INT64
    compute_exactly(Exported(model, ("x",), (), 18))
    assert [node.op_type for node in model.graph] == ["Shape", "Sub", "Max"]


def test_products_of_sizes_are_compared_whole() -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 18]>
        g (float[n] x) => (int64[2] z, int64[1] w) <int64[1] seven = {7}> {
            s = Shape(x)  t = Mul(s, s)  u = Concat <axis = 0> (t, t)  z = Max(u, seven)  w = Max(t, seven)
        }
    """
    model = ir.from_proto(onnx.parser.parse_model(text))
    for node in model.graph:
        node.outputs[0].dtype = ir.DataType.INT64
    compute_exactly(Exported(model, ("x",), (), 18))
    assert [node.op_type for node in model.graph] == ["Shape", "Mul", "Concat", "Less", "Where", "Max"]
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString())
    answers = session.run(None, {"x": np.zeros(50_000, np.float32)})
    assert [answer.tolist() for answer in answers] == [[2_500_000_000] * 2, [2_500_000_000]]


def test_axes_are_no_numbers_that_are_compared() -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 18]>
        g (int32[n, 2] x) => (int32[n] z) <int64[1] last = {-1}> { z = ReduceMin <keepdims = 0> (x, last) }
    """
    model = ir.from_proto(onnx.parser.parse_model(text))
    compute_exactly(Exported(model, ("x",), (), 18))
    assert [node.op_type for node in model.graph] == ["ReduceMin"]


def test_what_a_branch_gives_is_no_size() -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 18]>
        g (bool c, int64[8] x, int64[8] y) => (int64[8] z) {
            b = If (c) <then_branch = t () => (int64[8] p) { p = Max(x, y) }, else_branch = e () => (int64[8] q) { q = Neg(x) }>
            z = Sign(b)
        }
    """
    model = ir.from_proto(onnx.parser.parse_model(text))
    for node in model.graph.all_nodes():
        node.outputs[0].dtype = ir.DataType.INT64
    compute_exactly(Exported(model, ("c", "x", "y"), (), 18))
    assert {node.op_type for node in model.graph.all_nodes()}.isdisjoint({"Max", "Sign"})
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString())
    (answer,) = session.run(None, {"c": np.array(True), "x": X, "y": Y})
    np.testing.assert_array_equal(answer, np.sign(np.maximum(X, Y)))


GRID = np.tile(
    np.array([[5, 2**31, 7, 2**32 - 1, 3, 1, 0, 2**31 + 1, 2], [-1, -(2**32), -2, -3, -(2**31) - 1, -4, -5, -6, -7]]),
    (2, 3, 2),
)
REDUCED: list[tuple[str, dict[str, Any]]] = [
    ("Max <keepdims = 0> (x, last)", {"dim": -1}),
    ("Min <keepdims = 1> (x, last)", {"dim": -1, "keepdim": True}),
    ("Max <keepdims = 0> (x, two)", {"dim": (0, 2)}),
    ("Min <keepdims = 0> (x)", {}),
    ("Max <keepdims = 1> (x)", {"keepdim": True}),
]


@pytest.mark.parametrize(("node", "options"), REDUCED, ids=[node for node, _ in REDUCED])
def test_the_largest_along_axes_is_that_of_torch(node: str, options: dict[str, Any]) -> None:
    text = f"""
        <ir_version: 10, opset_import: ["" : 18]>
        g (int64[a, b, c] x) => (int64 z) <int64[1] last = {{-1}}, int64[2] two = {{0, 2}}> {{ z = Reduce{node} }}
    """
    model = ir.from_proto(onnx.parser.parse_model(text))
    model.graph.outputs[0].shape = None
    compute_exactly(Exported(model, ("x",), (), 18))
    assert not any(each.op_type.startswith("Reduce") for each in model.graph)
    (answer,) = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString()).run(None, {"x": GRID})
    function = torch.amax if node.startswith("Max") else torch.amin
    np.testing.assert_array_equal(
        answer, function(torch.from_numpy(GRID), **{"dim": (), **options}).numpy(), strict=True
    )


SUMMED: list[tuple[str, dict[str, Any]]] = [
    ("<keepdims = 0> (x, last)", {"dim": -1}),
    ("<keepdims = 1> (x, two)", {"dim": (0, 2), "keepdim": True}),
    ("<keepdims = 0> (x)", {"dim": (0, 1, 2)}),
]


@pytest.mark.parametrize(("node", "options"), SUMMED, ids=[node for node, _ in SUMMED])
@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 1, 1), (2, 3, 0), (0, 3, 2)], ids=str)
def test_sums_are_those_of_torch(node: str, options: dict[str, Any], shape: tuple[int, ...]) -> None:
    text = f"""
        <ir_version: 10, opset_import: ["" : 18]>
        g (int64[a, b, c] x) => (int64 z) <int64[1] last = {{2}}, int64[2] two = {{0, 2}}> {{ z = ReduceSum{node} }}
    """
    model = ir.from_proto(onnx.parser.parse_model(text))
    model.graph.outputs[0].shape = None
    compute_exactly(Exported(model, ("x",), (), 18))
    numbers = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, shape)
    (answer,) = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString()).run(None, {"x": numbers})
    np.testing.assert_array_equal(answer, torch.from_numpy(numbers).sum(**options).numpy(), strict=True)


def test_sums_of_truths_stay_as_they_are() -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 18]>
        g (bool[n, m] x) => (int64[n] z) <int64[1] last = {-1}> {
            y = Cast <to = 7> (x)  z = ReduceSum <keepdims = 0> (y, last)
        }
    """
    model = ir.from_proto(onnx.parser.parse_model(text))
    next(iter(model.graph)).outputs[0].dtype = ir.DataType.INT64
    compute_exactly(Exported(model, ("x",), (), 18))
    assert [node.op_type for node in model.graph] == ["Cast", "ReduceSum"]


def test_the_largest_of_nothing_is_what_onnx_says() -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 18]> g (int64[a, b] x) => (int64 z) { z = ReduceMax <keepdims = 0> (x) }
    """
    model = ir.from_proto(onnx.parser.parse_model(text))
    compute_exactly(Exported(model, ("x",), (), 18))
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString())
    assert session.run(None, {"x": np.zeros((0, 3), np.int64)})[0] == -(2**63)


class Times(torch.nn.Module):
    def forward(self, x, y):
        both = torch.stack([x, y])
        pairs = torch.maximum(x, y), torch.minimum(x, y), x.clamp(0, 2**33), x.clamp(min=y), x.sign(), x.relu()
        rest = both.sum(), both.sum(1), x**3, torch.fmod(x, 7), torch.fmod(x, y.abs() + 1)
        return *pairs, both.amax(1), both.amin(), both.max(1).values, both.min(), *rest


def test_an_exported_file_compares_64_bits() -> None:
    def inputs(n: int = 4) -> dict[str, torch.Tensor]:
        return {"x": torch.randint(-(2**40), 2**40, (n,)), "y": torch.randint(-(2**40), 2**40, (n,))}

    file = anyshape.load(anyshape.export(Times(), inputs, where=["1 <= n <= 8"]).model_proto.SerializeToString())
    given = torch.from_numpy(X[:7]), torch.from_numpy(Y[:7])
    for actual, expected in zip(file(*given), Times()(*given), strict=True):
        assert torch.equal(torch.as_tensor(actual), expected)
