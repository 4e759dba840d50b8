"""Models that decide by values: each way through them is in the file, and the values of a call choose."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import anyshape
from anyshape.report.text import describe_ladder


class Branch(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x - 1


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(40, 40), nn.Linear(40, 40)

    def forward(self, x, flag):
        hidden = self.first(x)
        if flag:
            hidden = hidden + 1
            if hidden.mean().item() > 0.9:
                hidden = self.second(hidden)
        return hidden.relu()


class Early(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).sin()
            if x.abs().mean() < 0.3:
                break
        return x


class Repeated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, n):
        for step in range(int(n)):
            x = self.linear(x).sin() + step
        return x


class Halved(nn.Module):
    def forward(self, x):
        while x.abs().max() > 0.1:
            x = x / 2
        return x + 1


class Shortened(nn.Module):
    def forward(self, x, lengths):
        longest = int(lengths.max())
        return x[:, :longest].cumsum(1)


class Typed(nn.Module):
    def forward(self, x):
        return x.to(float) if x.sum() > 0 else x.to(float) + torch.ones(1, dtype=float)


class Asserted(nn.Module):
    def forward(self, x):
        assert (x < 50).all(), "too large"
        return x * 2


def export(model, inputs, path, **options):
    torch.manual_seed(0)
    result = anyshape.export(model.eval(), inputs, path, **options)
    assert result.strategy == "decided"
    return result


def assert_same(model, path, *inputs: torch.Tensor) -> None:
    with torch.no_grad():
        expected = model.eval()(*inputs)
    session = onnxruntime.InferenceSession(str(path))
    feeds = {given.name: value.numpy() for given, value in zip(session.get_inputs(), inputs, strict=True)}
    (actual,) = session.run(None, feeds)
    np.testing.assert_allclose(actual, expected.numpy(), rtol=1e-5, atol=1e-5)


def test_both_sides_of_a_branch_on_values_are_in_the_file(tmp_path) -> None:
    model, path = Branch(), tmp_path / "m.onnx"
    result = export(model, lambda b=2, t=3: torch.randn(b, t), path)
    for offset in (3.0, -3.0):
        assert_same(model, path, torch.randn(5, 7) * 0.1 + offset)
    told = describe_ladder(result)
    assert "rung    decided: right" in told
    assert "decides by values: " in told and "if x.sum() > 0:" in told


def test_python_s_own_types_are_dtypes_beside_a_branch(tmp_path) -> None:
    model, path = Typed(), tmp_path / "m.onnx"
    export(model, lambda b=2: torch.randn(b, 3), path)
    for offset in (3.0, -3.0):
        assert_same(model, path, torch.randn(4, 3) * 0.1 + offset)


def test_a_branch_inside_a_branch_and_its_weights_once(tmp_path) -> None:
    model, path = Nested(), tmp_path / "m.onnx"
    result = export(model, (torch.randn(2, 40), torch.tensor(True)), path, dynamic={"x": "b _"})
    assert len([name for name in result.model.graph.initializers if name.endswith("weight")]) == 2
    for offset in (0.0, 9.0, -9.0):
        for flag in (True, False):
            assert_same(model, path, torch.randn(3, 40) + offset, torch.tensor(flag))


def test_a_loop_that_a_value_may_end_early(tmp_path) -> None:
    model, path = Early(), tmp_path / "m.onnx"
    export(model, lambda b=2: torch.randn(b, 4), path)
    for scale in (0.0, 1.0, 5.0):
        assert_same(model, path, torch.randn(3, 4) * scale)


@pytest.mark.thorough
def test_a_number_of_steps_that_is_a_value(tmp_path) -> None:
    model, path = Repeated(), tmp_path / "m.onnx"
    export(model, lambda b, n=3: (torch.randn(b, 4), torch.tensor(n)), path)
    for steps in (0, 1, 2, 13, 40):
        assert_same(model, path, torch.randn(3, 4), torch.tensor(steps))


@pytest.mark.thorough
def test_a_number_of_steps_below_zero_is_no_step(tmp_path) -> None:
    model, path = Repeated(), tmp_path / "m.onnx"
    export(model, lambda b, n=3: (torch.randn(b, 4), torch.tensor(n)), path)
    assert_same(model, path, torch.randn(3, 4), torch.tensor(-1))


@pytest.mark.thorough
def test_a_while_that_asks_a_value_each_time(tmp_path) -> None:
    model, path = Halved(), tmp_path / "m.onnx"
    export(model, lambda b=2: torch.randn(b, 4), path)
    for scale in (0.0, 0.01, 1.0, 300.0):
        assert_same(model, path, torch.randn(3, 4) * scale)


def test_a_length_that_is_a_value_becomes_an_axis_without_a_name(tmp_path) -> None:
    model, path = Shortened(), tmp_path / "m.onnx"
    result = export(model, lambda b, t: (torch.randn(b, t, 2), torch.randint(1, t + 1, (b,))), path)
    assert str(result.contract.outputs[0]) == "output: float32[b, ?, 2]"
    for lengths in ([1, 1], [4, 2], [6, 6]):
        assert_same(model, path, torch.randn(2, 6, 2), torch.tensor(lengths))


def test_what_the_model_asserts_the_file_asserts_too(tmp_path) -> None:
    model, path = Asserted(), tmp_path / "m.onnx"
    export(model, lambda b=2: torch.randn(b, 4), path)
    assert_same(model, path, torch.randn(3, 4))
    with pytest.raises(anyshape.AnyshapeError) as caught:
        anyshape.load(path)(torch.full((3, 4), 99.0))
    assert caught.value.finding.code == "AS419" and "too large" in str(caught.value)


def test_questions_that_change_their_kind_are_refused_with_their_line() -> None:
    class Either(nn.Module):
        def forward(self, x):
            if x.shape[0] > 3:
                for _ in range(int(x.abs().sum())):
                    x = torch.tanh(x) + 1
                return x
            return x * 2 if x.sum() > 0 else x

    with pytest.raises(anyshape.AnyshapeError) as caught:
        anyshape.export(Either(), lambda b=2: torch.randn(b, 4))
    assert caught.value.finding.where is not None


def test_a_slice_by_a_value_on_one_side_of_a_branch_on_sizes(tmp_path) -> None:
    class Either(nn.Module):
        def forward(self, x):
            if x.shape[0] > 3:
                return x[:, : int(x.abs().sum())]
            return x * 2 if x.sum() > 0 else x

    model, path = Either(), tmp_path / "m.onnx"
    export(model, lambda b=2: torch.randn(b, 4), path)
    for batch in (1, 3, 4, 50):
        for x in (torch.randn(batch, 4), torch.zeros(batch, 4), torch.rand(batch, 4) * 0.02):
            assert_same(model, path, x)


def test_what_follows_from_weights_alone_is_no_question() -> None:
    class Switched(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("switch", torch.tensor(1.0))

        def forward(self, x):
            return x * 2 if self.switch > 0 else x

    result = anyshape.export(Switched(), lambda b=2: torch.randn(b, 4))
    assert result.strategy != "decided"


@pytest.mark.thorough
def test_a_number_that_other_values_must_agree_with(tmp_path) -> None:
    class Pooled(nn.Module):
        def forward(self, x, group):
            count = int(group.max()) + 1
            return torch.zeros(count, 4).index_add_(0, group, x)

    model, path = Pooled(), tmp_path / "m.onnx"
    export(model, lambda n=6: (torch.randn(n, 4), torch.randint(0, 3, (n,))), path)
    for groups in (1, 2, 9):
        assert_same(model, path, torch.randn(20, 4), torch.randint(0, groups, (20,)))


class Scaled(nn.Module):
    """A float that is asked of values and only computed with: it decides nothing."""

    def forward(self, x):
        largest = float(x.abs().max())
        step = math.log(largest + 1, 2) / 127
        return (x / step).round() * step, x.mean() * largest, torch.full((2,), largest), largest


def test_a_float_that_is_only_computed_with_is_a_tensor(tmp_path) -> None:
    model, path = Scaled(), tmp_path / "m.onnx"
    result = export(model, lambda b=2, t=3: torch.randn(b, t), path)
    assert not any("decides by values" in line for line in describe_ladder(result).splitlines())
    x = torch.randn(4, 5)
    expected = [value.numpy() if isinstance(value, torch.Tensor) else np.float32(value) for value in model(x)]
    actual = onnxruntime.InferenceSession(str(path)).run(None, {"x": x.numpy()})
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


class Counted(nn.Module):
    """The number that is asked for and the rows that a mask leaves are the same, whatever the values."""

    def forward(self, x, mask):
        count = int(mask.sum())
        return x[mask].reshape(count, 2, 2).sum(1)


class Placed(nn.Module):
    """A cache of fixed length that is written from a place on that is a value."""

    def forward(self, x, cache, start):
        place, length = int(start), x.shape[1]
        cache = cache.clone()
        cache[:, place : place + length] = x
        known = cache[:, : place + length]
        return (x @ known.transpose(1, 2)).softmax(-1) @ known


def test_a_count_and_the_rows_that_were_counted_agree(tmp_path) -> None:
    model, path = Counted(), tmp_path / "m.onnx"
    export(model, lambda b=2, t=3: (torch.randn(b, t, 4), torch.rand(b, t) > 0.5), path)
    for share in (0.0, 0.4, 1.0):
        assert_same(model, path, torch.randn(3, 5, 4), torch.rand(3, 5) < share)


@pytest.mark.thorough
def test_a_place_that_is_a_value_is_an_open_place_of_a_slice(tmp_path) -> None:
    model, path = Placed(), tmp_path / "m.onnx"

    def inputs(b=2, t=3):
        return torch.randn(b, t, 4), torch.randn(b, 32, 4), torch.tensor(2)

    export(model, inputs, path, where=["t <= 16"])
    for start in (0, 5, 16):
        assert_same(model, path, torch.randn(3, 7, 4), torch.randn(3, 32, 4), torch.tensor(start))


class Normalized(nn.Module):
    """Where all numbers are equal, the other side would divide noise by noise."""

    def forward(self, x):
        mean, spread = x.mean().item(), x.std().item()
        if spread < 1e-3:
            spread = 1.0
        return (x - mean) / spread


def test_a_side_is_not_judged_by_values_that_never_lead_there(tmp_path) -> None:
    model, path = Normalized(), tmp_path / "m.onnx"
    export(model, lambda b=2, t=3: torch.randn(b, t), path, where=["t >= 2"])
    assert_same(model, path, torch.randn(4, 5))
    assert_same(model, path, torch.ones(4, 5))


class Measured(nn.Module):
    """Numbers that follow from sizes alone, asked for in a model that decides by values: they are no questions."""

    def forward(self, x):
        ones = torch.ones(x.shape[1])
        half = x[:, : int(ones.sum()) // 2 + 1] / float(ones.sum())
        return half if x.sum() > 0 else half * 2


def test_numbers_that_follow_from_sizes_are_learned_beside_a_decision(tmp_path) -> None:
    model, path = Measured(), tmp_path / "m.onnx"
    export(model, lambda b=2, t=3: torch.randn(b, t), path)
    for offset in (3.0, -3.0):
        assert_same(model, path, torch.randn(4, 7) + offset)


class ListOfScales(torch.nn.Module):
    """A list that is looked up by a value, whose smallest is 0."""

    def __init__(self) -> None:
        super().__init__()
        self.scales = [0.5, 3.0, -1.0]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scales[int(x.sum(0)[:3].argmax())]


def test_a_list_is_looked_up_by_a_value_that_may_be_zero(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    anyshape.export(ListOfScales(), lambda batch=3, seq=6: torch.randn(batch, seq), path, where=["seq >= 3"])
    for place in range(3):
        x = torch.zeros(2, 5)
        x[:, place] = 1.0
        torch.testing.assert_close(anyshape.load(path)(x), ListOfScales()(x))
