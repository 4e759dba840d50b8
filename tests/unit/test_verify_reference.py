"""The reference: the module as it is, every call from the same state, and everything as before afterwards."""

from __future__ import annotations

import random
import time
import warnings
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
import torch
from tests.own_process import in_own_process
from torch import nn

from anyshape.findings import UsageError
from anyshape.modules import state
from anyshape.modules.same_values import is_same, tensor_bytes
from anyshape.verify.reference import Answer, Reference, Refused
from anyshape.verify.tensors import as_float64, cloned, fingerprint, map_tensors, to_array, total_elements


@dataclass(frozen=True)
class Call:
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


def flatten(outputs: Any) -> list[tuple[str, Any]]:
    return (
        [(f"output.{i}", leaf) for i, leaf in enumerate(outputs)]
        if isinstance(outputs, tuple)
        else [("output", outputs)]
    )


def answer(module: nn.Module, *args: Any, **kwargs: Any) -> Answer:
    with Reference(module, flatten) as reference:
        given = reference.run(Call(args, kwargs))
    assert isinstance(given, Answer), given
    return given


class Box:
    """A plain object that a module may keep."""

    def __init__(self) -> None:
        self.values: list[torch.Tensor] = [torch.zeros(2)]
        self.n = 0


class Messy(nn.Module):
    """Changes everything that forward can change."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.dropout = nn.Dropout(0.5)
        self.register_buffer("running", torch.zeros(3))
        self.n = 0
        self.hidden: torch.Tensor | None = None
        self.mask = torch.ones(3)
        self.history: list[int] = []
        self.cache: dict[str, torch.Tensor] = {}
        self.box = Box()

    def forward(self, x: torch.Tensor) -> Any:
        self.n += 1
        self.running += x.mean(0)
        self.running.data.add_(1)
        self.hidden = x.mean() if self.hidden is None else self.hidden + x.mean()
        self.mask.mul_(2)
        self.history.append(self.n)
        self.cache["x"] = x
        self.box.values[0] += 1
        self.box.values.append(x)
        self.box.n += 1
        self.linear.weight.data.mul_(0.5)
        self.new = 1
        del self.dropout
        x.add_(1)
        random.random()
        np.random.rand()
        return self.linear(x) * self.mask + self.running + self.hidden + self.n + torch.rand(1)


def state_of(module: Messy) -> dict[str, Any]:
    return {
        "weights": [p.detach().clone() for p in module.parameters()],
        "running": module.running.clone(),
        "plain": (
            module.n,
            module.hidden,
            list(module.history),
            dict(module.cache),
            module.box.n,
            hasattr(module, "new"),
        ),
        "mask": module.mask.clone(),
        "box": [v.clone() for v in module.box.values],
        "training": [part.training for part in module.modules()],
        "rng": (torch.get_rng_state().tolist(), random.getstate()[1], np.random.get_state()[1].tolist()),  # type: ignore[index,union-attr]
    }


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return bool(one == other)


@pytest.mark.parametrize("training", [True, False])
def test_every_call_starts_from_the_same_state_and_none_is_left(training: bool) -> None:
    module = Messy().train(training)
    module.dropout.train(not training)
    module.linear.weight.grad = gradient = torch.ones(3, 3)
    before, parts = state_of(module), list(module.modules())
    x = torch.randn(4, 3, requires_grad=True)
    kept = x.detach().clone()
    with Reference(module, flatten) as reference:
        before["rng"] = state_of(module)["rng"]
        first, second = reference.run(Call((x,))), reference.run(Call((x,)))
    assert isinstance(first, Answer)
    assert isinstance(second, Answer)
    assert np.array_equal(first.arrays[0], second.arrays[0])
    assert torch.equal(x, kept)
    assert same(before, state_of(module))
    assert list(module.modules()) == parts
    assert module.linear.weight.grad is gradient


def test_the_check_of_state_can_fail() -> None:
    module = Messy()
    before = state_of(module)
    with torch.no_grad():
        module(torch.randn(4, 3))
    assert not same(before, state_of(module))


def test_everything_is_as_before_when_the_module_raises_half_way() -> None:
    class Half(Messy):
        def forward(self, x: torch.Tensor) -> Any:
            super().forward(x)
            raise KeyError("half way")

    module = Half()
    before = state_of(module)
    with Reference(module, flatten) as reference:
        refused = reference.run(Call((torch.randn(4, 3),)))
    assert isinstance(refused, Refused)
    assert same(before, state_of(module))


def test_a_parameter_too_large_to_be_kept_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_ALWAYS_COPIED_BYTES", 0)
    assert answer(nn.Linear(3, 3), torch.ones(2, 3)).arrays[0].shape == (2, 3)

    class Writes(nn.Linear):
        def forward(self, x: torch.Tensor) -> Any:
            self.weight.mul_(2)
            return super().forward(x)

    with pytest.raises(UsageError, match="AS310 parameter-written: forward writes into parameter 'weight'"):
        answer(Writes(3, 3), torch.ones(2, 3))


def test_runs_in_eval_mode_without_gradients() -> None:
    class Tells(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return self.training, torch.is_grad_enabled(), x

    arrays = answer(Tells().train(), torch.ones(1)).arrays
    assert [array.tolist() for array in arrays] == [False, False, [1.0]]


def test_a_refusal_names_the_users_line() -> None:
    class Picky(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return x.view(3, 10)  # the line

    with Reference(Picky(), flatten) as reference:
        refused = reference.run(Call((torch.ones(4, 10),)))
    assert isinstance(refused, Refused)
    assert "shape '[3, 10]' is invalid" in refused.message
    assert refused.source is not None
    assert refused.source.text.endswith("# the line")
    assert not refused.memory


def test_a_refusal_below_torch_names_the_users_line_above() -> None:
    with Reference(nn.Sequential(nn.Linear(3, 3)), flatten) as reference:
        refused = reference.run(Call((torch.ones(4, 10),)))
    assert isinstance(refused, Refused)


def test_want_of_memory_is_told_from_a_refusal() -> None:
    class Greedy(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return torch.empty(1 << 50)

    with Reference(Greedy(), flatten) as reference:
        refused = reference.run(Call((torch.ones(1),)))
    assert isinstance(refused, Refused)
    assert refused.memory


def test_a_warning_is_no_refusal_even_where_warnings_are_errors() -> None:
    class Warns(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            warnings.warn("careful", stacklevel=1)
            return x

    assert answer(Warns(), torch.ones(2)).arrays[0].tolist() == [1.0, 1.0]


def test_numbers_become_arrays_and_none_is_left_out() -> None:
    class Numbers(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return x.shape[0], 0.5, True, None, x

    given = answer(Numbers(), torch.ones(2))
    assert [array.dtype.name for array in given.arrays] == ["int64", "float64", "bool", "float32"]
    assert given.python_floats == (False, True, False, False)
    assert given.paths == ("output.0", "output.1", "output.2", "output.4")


def test_an_output_that_is_a_view_of_the_state_is_kept_apart_from_it() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self) -> Any:
            self.count += 1
            return self.count

    assert answer(Counter()).arrays[0].tolist() == [1.0]


def test_a_scripted_module_is_as_good_as_another() -> None:
    module = torch.jit.script(nn.BatchNorm1d(3))
    module.train()
    before = module.running_mean.clone()
    assert answer(module, torch.ones(2, 3)).arrays[0].shape == (2, 3)
    assert module.training
    assert torch.equal(module.running_mean, before)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.float16, torch.int32, torch.bool])
def test_arrays_have_the_tensors_own_dtype(dtype: torch.dtype) -> None:
    array = to_array(torch.tensor([0.0, 1.0, 2.0]).to(dtype))
    assert array.dtype.name == str(dtype).removeprefix("torch.")
    assert array.astype(np.float32).tolist()[:2] == [0.0, 1.0]
    assert to_array(torch.zeros((), dtype=dtype)).shape == ()


def test_bfloat16_is_read_bit_by_bit() -> None:
    assert to_array(torch.tensor([1.5], dtype=torch.bfloat16)).tolist() == [ml_dtypes.bfloat16(1.5)]


class Pair(NamedTuple):
    a: torch.Tensor
    b: list[torch.Tensor]


def test_tensors_are_reached_in_any_nesting() -> None:
    box = Box()
    value = (Pair(torch.ones(2), [torch.arange(3)]), {"k": box}, Call((torch.ones(4),)))
    wide = map_tensors(value, as_float64)
    assert wide[0].a.dtype is torch.float64
    assert wide[0].b[0].dtype is torch.int64
    assert wide[1]["k"].values[0].dtype is torch.float64
    assert wide[2].args[0].dtype is torch.float64
    assert box.values[0].dtype is torch.float32
    assert total_elements(value) == 2 + 3 + 2 + 4


def test_a_copy_shares_nothing_but_repeats_what_was_one() -> None:
    x = torch.ones(2, requires_grad=True) * 2
    one, two = cloned((x, x))
    assert one is two
    one.add_(1)
    assert x.tolist() == [2.0, 2.0]


class Slow(nn.Module):
    """Counts its calls outside of what is put back."""

    def __init__(self, calls: list[int], seconds: float = 0.06) -> None:
        super().__init__()
        self.note = calls.append  # a bound method is no state
        self.seconds = seconds

    def forward(self, x: Any, k: Any = 0) -> Any:
        self.note(1)
        time.sleep(self.seconds)
        return x + k


def test_an_answer_that_took_long_is_recalled_for_equal_inputs() -> None:
    calls: list[int] = []
    with Reference(Slow(calls), flatten) as reference:
        first = reference.recall(Call((torch.arange(3.0),)))
        assert reference.recall(Call((torch.arange(3.0),))) is first
        assert len(calls) == 1
        assert reference.run(Call((torch.arange(3.0),))) is not first
        assert len(calls) == 2


@pytest.mark.parametrize(
    "other",
    [
        Call((torch.arange(3.0).double(),)),
        Call((torch.arange(3.0) + 1,)),
        Call((torch.arange(3.0).reshape(1, 3),)),
        Call((torch.arange(3.0), 1)),
        Call((torch.arange(3.0),), {"k": 0}),
        Call((-torch.zeros(3),)),
    ],
    ids=str,
)
def test_other_inputs_are_answered_by_a_call(other: Call) -> None:
    calls: list[int] = []
    with Reference(Slow(calls), flatten) as reference:
        reference.recall(Call((torch.arange(3.0),)))
        reference.recall(Call((torch.zeros(3),)))
        reference.recall(other)
    assert len(calls) == 3


def test_quick_answers_and_inputs_of_unknown_kinds_are_not_kept() -> None:
    calls: list[int] = []
    with Reference(Slow(calls, 0.0), flatten) as reference:
        for _ in range(2):
            reference.recall(Call((torch.arange(3.0),)))
    assert len(calls) == 2
    with Reference(Slow(calls), flatten) as reference:
        for _ in range(2):
            reference.recall(Call((torch.arange(3.0), np.float64(2))))
    assert len(calls) == 4


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.bfloat16, torch.complex64])
def test_a_single_element_that_was_expanded_has_the_bytes_of_its_copy(dtype: torch.dtype) -> None:
    expanded = torch.ones((), dtype=dtype).expand(1, 1)
    assert expanded.stride() == (0, 0) and expanded.is_contiguous()
    assert is_same(expanded, expanded.clone()) and tensor_bytes(expanded) == tensor_bytes(expanded.clone())
    assert fingerprint([expanded]) == fingerprint([torch.ones(1, 1, dtype=dtype)]) != fingerprint([expanded * 0])


def test_parts_of_a_tensor_have_the_fingerprint_of_their_copies() -> None:
    whole = torch.randn(4, 5)
    for part in (whole[1:], whole.t(), whole[:, ::2], whole[:0]):
        assert fingerprint([part]) == fingerprint([part.clone()]) != fingerprint([whole])


@in_own_process
def test_calls_that_were_begun_answer_as_those_that_were_not() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).train()
    calls = [Call((torch.full((2, 3), float(number)),)) for number in range(4)]
    with Reference(module, flatten, apart=True) as reference:
        expected = [reference.run(call) for call in calls]
        for call in calls[1:]:
            reference.begin(call)
        reference.drop(calls[2])
        for call, one in zip(calls, expected, strict=True):
            other = reference.run(call)
            assert isinstance(one, Answer)
            assert isinstance(other, Answer)
            assert np.array_equal(one.arrays[0], other.arrays[0])
