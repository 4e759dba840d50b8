"""Sizes that Python computes, by floats, powers and comparisons: right at every one of them, not only at the traced."""

from __future__ import annotations

import math

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence

import anyshape


class Sized(nn.Module):
    def __init__(self, size) -> None:
        super().__init__()
        self.size = size

    def forward(self, x):
        return torch.cat([x, x, x])[: self.size(x.shape[0])]


SIZES = {
    "share rounded up": lambda n: math.ceil(1.1 * n),
    "share rounded down": lambda n: math.floor(n / 1.5),
    "nearest": lambda n: round(n * 0.5),
    "root": lambda n: math.trunc(n**0.5),
    "sum of floats": lambda n: math.ceil(n / 2 + 0.3),
    "share, one at least": lambda n: max(1, int(n * 0.3)),
    "power of two": lambda n: 1 << (n - 1).bit_length(),
    "half of a padding": lambda n: (math.ceil(n / 4.0) * 4 - n) // 2,
    "logarithm": lambda n: int(math.log(n) + 1),
    "logarithm to a base": lambda n: int(math.log(n, 2)) + 1,
    "bits": lambda n: math.ceil(math.log2(n)) + 1,
    "digits": lambda n: int(math.log10(n)) + 1,
    "power of two above": lambda n: 2 ** math.ceil(math.log2(n)),
    "broken power": lambda n: int(math.pow(n, 0.7)),
    "remainder of floats": lambda n: int((n % 0.7) * 10) + 1,
    "quotient of floats": lambda n: int(n // 0.7 - n // 1.1) + 1,
    "remainder below 0": lambda n: int((n % -7.5) // -0.5) + 1,
    "decay": lambda n: int(n * math.exp(-n / 100)),
}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.long_table
def test_a_computed_size_is_what_python_computes(name, tmp_path) -> None:
    model, path = Sized(SIZES[name]), tmp_path / "m.onnx"
    anyshape.export(model, lambda n=9: torch.randn(n), path)
    session = onnxruntime.InferenceSession(str(path))
    wrong = [
        n
        for n in range(1, 400)
        if session.run(None, {"x": np.zeros(n, np.float32)})[0].shape != model(torch.zeros(n)).shape
    ]
    assert wrong == []


NUMBERS = {
    "root": lambda x: x / math.sqrt(x.shape[0]),
    "logarithm": lambda x: x * math.log(x.shape[0] + 1) + x.shape[0] / 3,
    "number from left": lambda x: len(x) / 7 - x,
    "as an answer": lambda x: (x, x.shape[0] / 7),
    "the number of steps": lambda x: x + math.exp(-len(x) / 20) * math.log2(len(x)) * math.log10(len(x)),
}


class Computed(nn.Module):
    def __init__(self, compute) -> None:
        super().__init__()
        self.compute = compute

    def forward(self, x):
        return self.compute(x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.long_table
def test_a_float_of_a_size_stays_open_in_the_precision_of_the_tensors_it_meets(name, dtype, tmp_path) -> None:
    path = tmp_path / "m.onnx"
    result = anyshape.export(Computed(NUMBERS[name]), lambda n=9: torch.randn(n, dtype=dtype), path)
    assert result.strategy == "symbolic" and result.contract.tested.capture_proved
    session = onnxruntime.InferenceSession(str(path))
    for n in (1, 2, 8, 10, 100, 1000):
        x = torch.randn(n, dtype=dtype)
        expected = NUMBERS[name](x)
        for one, other in zip(
            expected if isinstance(expected, tuple) else (expected,), session.run(None, {"x": x.numpy()}), strict=True
        ):
            tolerance = 1e-14 if other.dtype == np.float64 else 1e-6
            np.testing.assert_allclose(other, np.asarray(one), rtol=tolerance, atol=tolerance)


class BestDelays(nn.Module):
    def forward(self, x):
        return x.topk(int(math.log(x.shape[1]) + 1), 1).values


def test_a_guard_on_a_logarithm_is_one_that_torch_can_run() -> None:
    assert anyshape.export(BestDelays(), lambda b=2, n=9: torch.randn(b, n)).strategy == "symbolic"


class Remainder(nn.Module):
    def forward(self, x):
        return x * 2 if int(x.shape[0]) % 37 == 5 else x + 1


@pytest.mark.parametrize("strategy", ["symbolic", "generalized"])
def test_a_branch_on_a_remainder_that_python_computes(strategy, tmp_path) -> None:
    path = tmp_path / "m.onnx"
    result = anyshape.export(Remainder(), lambda n=9: torch.randn(n), path, strategy=strategy)
    assert {str(region.condition) for region in result.regions} == {"n % 37 == 5", "n % 37 != 5"}
    loaded = anyshape.load(path)
    for n in (5, 37, 41, 42, 43, 79):
        torch.testing.assert_close(loaded(torch.full((n,), 3.0)), Remainder()(torch.full((n,), 3.0)))


class Squeezed(nn.Module):
    def forward(self, x):
        return x.squeeze(1)


@pytest.mark.parametrize("strategy", [None, "generalized"])
def test_squeeze_of_an_open_axis_takes_it_away_only_where_it_is_one(strategy, tmp_path) -> None:
    path = tmp_path / "m.onnx"
    result = anyshape.export(Squeezed(), lambda b=2, t=5: torch.randn(b, t, 3), path, strategy=strategy)
    assert result.contract.outputs[0].any_rank
    session = onnxruntime.InferenceSession(str(path))
    shapes = [session.run(None, {"x": np.zeros((2, t, 3), np.float32)})[0].shape for t in (1, 2, 5)]
    assert shapes == [(2, 3), (2, 2, 3), (2, 5, 3)]


def test_a_rule_on_the_product_of_two_dims_is_found(tmp_path) -> None:
    model = nn.InstanceNorm2d(3)  # refuses one element in each channel
    result = anyshape.export(model, lambda b=2, h=4, w=5: torch.randn(b, 3, h, w))
    assert "h*w >= 2" in [str(relation) for relation in result.contract.domain.relations]


class WholeWindows(nn.Module):
    def forward(self, x):
        return F.avg_pool2d(x, x.size()[2:]), F.max_pool2d(x, x.shape[2:]), F.max_pool1d(x[:, :, 0], x.size(3))


def test_pooling_over_a_whole_open_axis() -> None:
    result = anyshape.export(WholeWindows(), lambda b=2, h=4, w=5: torch.randn(b, 3, h, w))
    assert result.strategy == "symbolic" and result.contract.tested.capture_proved


class Ratio(nn.Module):
    def forward(self, x):
        side = int(math.sqrt(x.shape[0]))
        assert isinstance(side, int) or not isinstance(side, float)
        return x[: side * side].reshape(side, side), x[: int(0.29 * x.shape[0])]


def test_int_and_roots_of_sizes_stay_open_and_globals_are_put_back(tmp_path) -> None:
    path = tmp_path / "m.onnx"
    globals().setdefault("__warningregistry__", {})  # Python's own note of warnings, here the one about an open end
    before = dict(globals())
    result = anyshape.export(Ratio(), lambda n=9: torch.randn(n), path)
    assert result.strategy == "symbolic" and globals() == before and int is int
    session = onnxruntime.InferenceSession(str(path))
    for n in (1, 8, 9, 24, 25, 100):
        shapes = [value.shape for value in session.run(None, {"x": np.zeros(n, np.float32)})]
        assert shapes == [tuple(value.shape) for value in Ratio()(torch.zeros(n))]


class Typed(nn.Module):
    def forward(self, x):
        return x.to(float) * 2, torch.zeros(x.shape[0], dtype=int)


def test_python_s_own_types_as_dtypes_are_captured_all_the_same() -> None:
    result = anyshape.export(Typed(), lambda n=9: torch.randn(n))
    assert result.strategy == "symbolic" and [output.dtype for output in result.contract.outputs] == [
        "float64",
        "int64",
    ]


DOUBLES = {
    "quotient of a size": lambda x: x * (x.shape[0] / 7),
    "root of a size": lambda x: x + x.shape[0] ** -0.5,
    "bound made of sizes": lambda x: x.clamp(-1 / x.shape[0], x.shape[0] / 70),
    "filled in": lambda x: x.masked_fill(x > 0, x.shape[0] / 7),
    "to the power": lambda x: (x.shape[0] / 7) ** x,
    "evenly spaced": lambda x: x * torch.linspace(0, x.shape[0] / 7, x.shape[0], dtype=torch.float64),
    "constants": lambda x: x * 0.1 + 1 / 7,
    "slope": lambda x: F.leaky_relu(x, 0.1) + F.hardtanh(x, -0.1, 0.3),
    "weight": lambda x: torch.lerp(x, x * x, 0.3) + torch.addcmul(x, x, x, value=0.3),
}


@pytest.mark.parametrize("name", DOUBLES)
@pytest.mark.long_table
def test_a_number_that_meets_doubles_is_a_double(name, tmp_path) -> None:
    path = tmp_path / "m.onnx"
    anyshape.export(Computed(DOUBLES[name]), lambda n=9: torch.randn(n, dtype=torch.float64), path)
    session = onnxruntime.InferenceSession(str(path))
    for n in (1, 5, 13, 31):
        x = torch.randn(n, dtype=torch.float64)
        expected = DOUBLES[name](x).numpy()
        np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], expected, rtol=1e-13, atol=1e-15)


class TableOfAtMost(nn.Module):
    def forward(self, x):
        length = int(x.shape[1])
        length = min(length, 40)
        return x[:, :length] + torch.tensor([math.sin(place * place) for place in range(length)])


def test_a_table_without_a_rule_is_kept_whole_where_no_size_asks_for_more(tmp_path) -> None:
    path = tmp_path / "m.onnx"
    result = anyshape.export(TableOfAtMost(), lambda b=2, n=9: torch.randn(b, n), path, strategy="generalized")
    assert result.strategy == "generalized"
    session = onnxruntime.InferenceSession(str(path))
    for n in (1, 2, 39, 40, 41, 300):
        x = torch.randn(2, n)
        np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], TableOfAtMost()(x).numpy(), rtol=1e-6)


class StateOfPacked(nn.Module):
    """The number of packed sequences, taken as an int."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(4, 6, batch_first=True)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return self.gru(packed, torch.zeros(1, int(packed.batch_sizes[0]), 6))[1]


def test_the_number_of_packed_sequences_stays_open_behind_int() -> None:
    def inputs(batch=2, seq=3):
        return torch.randn(batch, seq, 4), torch.randint(1, seq + 1, (batch,))

    assert anyshape.export(StateOfPacked().eval(), inputs, None).strategy == "symbolic"


class Periodic(nn.Module):
    """A condition that integer arithmetic does not say, on a number that the code does not hold."""

    def __init__(self) -> None:
        super().__init__()
        self.factors = [3, 7]

    def forward(self, x):
        size, period = int(x.shape[0]), self.factors[0] * self.factors[1]
        return x.flip(0) if float(size) / period == size // period else x + 1


def test_a_condition_in_floats_is_tried_where_it_does_not_hold(tmp_path) -> None:
    path = tmp_path / "m.onnx"
    anyshape.export(Periodic(), lambda n=9: torch.randn(n), path)
    session = onnxruntime.InferenceSession(str(path))
    for n in (1, 20, 21, 22, 42, 63, 105, 400):
        x = torch.randn(n)
        np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], Periodic()(x).numpy())


class Fitted(nn.Module):
    """An image scaled to fit into a square: the smaller of two floats that are computed from sizes."""

    def forward(self, x):
        height, width = x.shape[-2:]
        share = min(16 / height, 16 / width)
        longest = max([height / width, width / height])
        return F.interpolate(x, (max(1, int(height * share)), max(1, int(width * share)))), x * longest


def test_the_smaller_of_two_floats_follows_the_sizes() -> None:
    result = anyshape.export(Fitted(), lambda h=5, w=6: torch.rand(1, 1, h, w), where=["1 <= h <= 40", "1 <= w <= 40"])
    session = onnxruntime.InferenceSession(result.model_proto.SerializeToString())
    for height in range(1, 41, 3):
        for width in range(1, 41, 4):
            x = torch.rand(1, 1, height, width)
            for actual, expected in zip(session.run(None, {"x": x.numpy()}), Fitted()(x), strict=True):
                np.testing.assert_allclose(actual, expected.numpy(), rtol=1e-5)
