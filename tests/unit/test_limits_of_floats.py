"""NaN, infinities, large halves and wrapped integers: a file answers for them as torch does."""

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

import anyshape

INFINITY, NAN = float("inf"), float("nan")


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def _attend(x):
    hidden = torch.zeros(x.shape[0], x.shape[0], dtype=torch.bool)
    query = torch.ones_like(x)
    return nn.functional.scaled_dot_product_attention(query[None], query[None], x[None], attn_mask=hidden)


def _attend_to_nothing(x):
    hidden = torch.zeros(x.shape[0], x.shape[0], dtype=torch.bool)
    return nn.functional.scaled_dot_product_attention(x[None], x[None], torch.ones_like(x)[None], attn_mask=hidden)


FUNCTIONS = {
    "clamp from below": lambda x: x.clamp(min=-1.0),
    "clamp from above": lambda x: x.clamp_max(1.0),
    "sign": torch.sign,
    "logsumexp": lambda x: torch.logsumexp(x, 0),
    "nan_to_num": torch.nan_to_num,
    "heaviside": lambda x: torch.heaviside(x, torch.tensor(0.5)),
    "logit": lambda x: torch.logit(x, 0.1),
    "logit with bounds that cross": lambda x: torch.logit(x, 0.7),
    "log of sigmoid": lambda x: torch.log(torch.sigmoid(x)),
    "xlogy": lambda x: torch.xlogy(torch.zeros_like(x), x),
    "root": lambda x: torch.cat([x**0.5, x**-0.5]),
    "largest norm": lambda x: torch.linalg.vector_norm(x, INFINITY),
    "least norm": lambda x: torch.linalg.vector_norm(x, -INFINITY, keepdim=True),
    "scattered maximum": lambda x: torch.zeros(2).scatter_reduce(0, (x < 1).long(), x, "amax"),
    "clamp from below by a tensor": lambda x: x.clamp_min(torch.tensor(-1.0)),
    "largest of all": lambda x: nn.functional.adaptive_max_pool1d(x[None, None], 1),
    "largest of bins": lambda x: nn.functional.adaptive_max_pool1d(x[None, None], 3),
    "topk": lambda x: x.topk(1).values,
    "threshold": lambda x: nn.functional.threshold(x, 0.5, 0.0),
}


def _compare(module, example, x, path):
    _compare_all(module, example, [x], path)


def _compare_all(module, example, inputs, path):
    anyshape.export(module, (example,), path, dynamic={"x": "n" if example.dim() == 1 else "n 4"})
    session = onnxruntime.InferenceSession(path)
    for x in inputs:
        np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], module(x).numpy(), rtol=1e-3)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nan_and_infinities(name, tmp_path):
    x = torch.tensor([INFINITY, -INFINITY, NAN, 1.0, 0.2])
    _compare_all(Function(FUNCTIONS[name]), torch.rand(4), (x, x[:1], x[1:2], x[3:]), tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("log", "dtype"),
    [(log, dtype) for log in (torch.log, torch.log2, torch.log10) for dtype in (torch.float32, torch.float64)],
)
def test_the_logarithm_of_a_small_sigmoid(log, dtype, tmp_path):
    x = torch.tensor([-5.0, -17, -18, -20, -30, -60, -87, -100, -700, -800, 0, 30, 100], dtype=dtype)
    _compare(Function(lambda x: log(torch.sigmoid(x))), torch.rand(4, dtype=dtype), x, tmp_path / "m.onnx")


@pytest.mark.parametrize(
    "function",
    [
        lambda x: 1 / torch.sigmoid(x),
        lambda x: torch.sigmoid(x) / torch.sigmoid(x).sum(),
        lambda x: x / torch.sigmoid(x).amax().view(1),
    ],
    ids=["reciprocal", "shares", "behind a view"],
)
def test_quotients_by_a_small_sigmoid(function, tmp_path):
    x = torch.tensor([-20.0, -25, -30, -41, -60])
    _compare(Function(function), torch.rand(4), x, tmp_path / "m.onnx")


@pytest.mark.parametrize(
    "function",
    [torch.log1p, torch.expm1, torch.erfc, torch.special.erfc, torch.special.log1p, torch.special.expm1],
    ids=lambda each: each.__name__,
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
def test_small_values_have_all_their_digits(function, dtype, tmp_path):
    """1 + x, exp(x) and erf(x) have few digits of x left, or none."""
    numbers = [
        0.0,
        -0.0,
        1e-8,
        -1e-8,
        3e-5,
        -2e-3,
        0.3,
        -0.7,
        1.0,
        2.9,
        4.5,
        8.0,
        -60,
        -1,
        100,
        INFINITY,
        -INFINITY,
        NAN,
    ]
    x = torch.tensor(numbers, dtype=dtype)
    example = torch.rand(4).to(dtype)
    anyshape.export(Function(function), (example,), tmp_path / "m.onnx", dynamic={"x": "n"})
    (actual,) = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"x": x.numpy()})
    relative = 4 * torch.finfo(dtype).eps if dtype is torch.float16 else 1e-5
    np.testing.assert_allclose(actual, function(x).numpy(), rtol=relative)
    assert (np.signbit(actual) == np.signbit(function(x).numpy()))[x.numpy() == 0].all()


def test_the_logarithm_of_the_sigmoid_in_one_function(tmp_path):
    x = torch.tensor([-1000.0, -100, -30, -18, 0, 30, 100])
    anyshape.export(Function(nn.functional.logsigmoid), (torch.rand(4),), tmp_path / "m.onnx", dynamic={"x": "n"})
    (actual,) = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"x": x.numpy()})
    np.testing.assert_allclose(actual, nn.functional.logsigmoid(x.double()).numpy(), rtol=1e-6, atol=1e-15)


NONE_OF_SOME = {
    "any of an axis": lambda x: (x > 0).any(1),
    "any of all": lambda x: (x > 0).any(),
    "any of axes": lambda x: torch.any(x > 0, (0, 1)),
    "any kept": lambda x: x.any(0, keepdim=True),
    "any of bytes": lambda x: x.to(torch.uint8).any(1) + 1,
    "any of bytes as it is": lambda x: x.to(torch.uint8).any(1),
    "all of bytes": lambda x: x.to(torch.uint8).all(),
    "all of axes of bytes": lambda x: torch.all(x.to(torch.uint8), (0, 1)),
    "all of an axis": lambda x: (x > 0).all(1),
    "all of all": lambda x: x.all(),
    "all of axes": lambda x: torch.all(x > 0, (0, 1), keepdim=True),
    "any in one operator": lambda x: torch.ops.aten._is_any_true(x > 0),
    "all in one operator": lambda x: torch.ops.aten._is_all_true(x > 0),
}


@pytest.mark.parametrize("name", NONE_OF_SOME)
def test_any_and_all_of_no_elements(name, tmp_path):
    n, m = (anyshape.dim(0, 200, example=size) for size in (4, 5))
    function = Function(NONE_OF_SOME[name])
    result = anyshape.export(function, lambda n=n, m=m: {"x": torch.randn(n, m, 3)}, tmp_path / "m.onnx")
    assert result.strategy == "symbolic"
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    for shape in ((2, 0, 3), (0, 2, 3), (0, 0, 3), (2, 4, 3), (1, 1, 3)):
        for x in (torch.randn(shape), torch.ones(shape), torch.zeros(shape)):
            (actual,) = session.run(None, {"x": x.numpy()})
            expected = function(x).numpy()
            assert actual.dtype == expected.dtype
            np.testing.assert_array_equal(actual, expected)


HALVES = {
    "sum": lambda x: (x.sum(), x.sum(1)),
    "product": lambda x: x.prod(1),
    "cumulative sum": lambda x: x.cumsum(0),
    "deviation": lambda x: x.std(1),
}


@pytest.mark.parametrize("name", HALVES)
def test_outputs_that_are_computed_in_single_precision_are_halves(name, tmp_path):
    function = Function(HALVES[name])
    result = anyshape.export(function, lambda n=3: {"x": torch.rand(n, 4).half()}, tmp_path / "m.onnx")
    assert result.strategy == "symbolic"
    x = torch.rand(5, 4).half()
    expected = function(x) if isinstance(function(x), tuple) else (function(x),)
    actual = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"x": x.numpy()})
    for one, other in zip(expected, actual, strict=True):
        assert other.dtype == np.float16
        np.testing.assert_allclose(other, one.numpy(), rtol=1e-2)


def test_logarithms_in_double_precision(tmp_path):
    module = Function(lambda x: torch.stack([x.log2(), x.log10(), x.clamp(0, 0.5)]))
    example = torch.rand(4, dtype=torch.float64)
    result = anyshape.export(module, (example,), tmp_path / "m.onnx", dynamic={"x": "n"})
    assert result.strategy == "symbolic"
    x = torch.tensor([0.0, -1.0, 8.0, 1000.0, INFINITY, NAN, 1e-300, 0.25], dtype=torch.float64)
    (actual,) = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"x": x.numpy()})
    np.testing.assert_allclose(actual, module(x).numpy(), rtol=1e-14)


def test_logsumexp_of_large_halves(tmp_path):
    x = torch.full((5,), 24064.0, dtype=torch.float16)
    _compare(Function(FUNCTIONS["logsumexp"]), torch.rand(4).half(), x, tmp_path / "m.onnx")


def test_a_row_that_sees_no_key_is_nan_where_a_value_is(tmp_path):
    x = torch.rand(5, 4)
    x[2, 1] = NAN
    _compare(Function(_attend), torch.rand(3, 4), x, tmp_path / "m.onnx")


def test_a_row_that_sees_no_key_is_nan_where_its_query_is(tmp_path):
    x = torch.rand(5, 4)
    x[2, 1] = NAN
    _compare(Function(_attend_to_nothing), torch.rand(3, 4), x, tmp_path / "m.onnx")
    path = tmp_path / "float.onnx"
    mask = torch.full((3, 3), -INFINITY)
    attend = lambda x, mask: nn.functional.scaled_dot_product_attention(x[None], x[None], x[None], mask)  # noqa: E731
    anyshape.export(attend, (torch.rand(3, 4), mask), path, dynamic={"x": "n 4", "mask": "n n"})
    mask[1, 2] = NAN
    (actual,) = onnxruntime.InferenceSession(path).run(None, {"x": x[3:].numpy()[[0, 1, 1]], "mask": mask.numpy()})
    np.testing.assert_array_equal(actual, attend(x[3:][[0, 1, 1]], mask).numpy())


POOLS = {
    "a line": lambda x: nn.functional.max_pool1d(x[None, :, 0], 2, 1),
    "a plane with padding": lambda x: nn.functional.max_pool2d(x[None], 2, 1, 1),
    "with places": lambda x: nn.functional.max_pool1d(x[None, :, 0], 2, 1, return_indices=True)[0],
    "places": lambda x: nn.functional.max_pool1d(x[None, :, 0], 2, 1, return_indices=True)[1],
    "places in a plane": lambda x: nn.functional.max_pool2d(x[None], 2, 1, 1, return_indices=True)[1],
}


@pytest.mark.parametrize("name", POOLS)
def test_the_largest_of_minus_infinities(name, tmp_path):
    x = torch.tensor([-INFINITY, -INFINITY, 1.0, -INFINITY, -INFINITY, torch.finfo(torch.float32).min, -INFINITY])
    _compare(Function(POOLS[name]), torch.rand(3, 4), x[:, None].repeat(1, 4), tmp_path / "m.onnx")


@pytest.mark.parametrize("name", POOLS)
def test_the_largest_beside_nan_is_the_last_nan(name, tmp_path):
    x = torch.tensor([1.0, NAN, -INFINITY, 2.0, NAN, NAN, -INFINITY])
    x = torch.stack([x, x.flip(0), x.roll(1), x.roll(2)], 1)
    _compare(Function(POOLS[name]), torch.rand(3, 4), x, tmp_path / "m.onnx")


def test_pooling_behind_layers_is_one_node(tmp_path):
    layers = nn.Sequential(nn.Conv1d(2, 2, 3), nn.SiLU(), nn.MaxPool1d(2), nn.MaxPool1d(2))
    anyshape.export(layers, lambda n=3: torch.randn(n, 2, 16), tmp_path / "m.onnx", enforce="load")
    operators = [node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node]
    assert operators.count("MaxPool") == 2
    assert "Where" not in operators


def test_a_root_of_minus_infinity_in_half_precision(tmp_path):
    x = torch.tensor([INFINITY, -INFINITY, NAN, -0.0, 0.0, 4.0], dtype=torch.float16)
    _compare(Function(FUNCTIONS["root"]), torch.rand(4).half(), x, tmp_path / "m.onnx")


def test_a_counter_of_32_bits_wraps_around(tmp_path):
    def mask(x):
        counted = torch.arange(x.shape[0], dtype=torch.int32) + (2**31 - 1 - 6000)
        return torch.where(counted >= 0, x, x * 2)

    _compare(Function(mask), torch.rand(4), torch.rand(6010), tmp_path / "m.onnx")
