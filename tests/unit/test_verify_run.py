"""Verification as a whole: what passes, what fails, how it is told, and what is left as it was."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from anyshape.records.verdict import FailureKind, Mismatch, Verdict, as_plain
from anyshape.verify import Reference, VerifyOptions, VerifyRequest, verify
from anyshape.verify.request import chooses_among_values
from anyshape.verify.tensors import to_array

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
SIZES = [{"batch": batch, "seq": seq} for batch in (2, 1, 7) for seq in (3, 1, 12)]


@dataclass(frozen=True)
class Call:
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass
class Box:
    top: int = 16

    def contains(self, sizes: Mapping[str, int]) -> bool:
        return all(1 <= size <= self.top for size in sizes.values())


class Module(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> Any:
        return self.function(*args)


def flatten(outputs: Any) -> list[tuple[str, Any]]:
    return (
        [(f"output.{i}", leaf) for i, leaf in enumerate(outputs)]
        if isinstance(outputs, tuple)
        else [("output", outputs)]
    )


def make(sizes: Mapping[str, int], seed: int) -> Call:
    return Call((torch.randn(sizes["batch"], sizes["seq"], generator=torch.Generator().manual_seed(seed)),))


def judge(function: Callable[..., Any], graph: str, *, make: Any = make, sizes: Any = SIZES, **options: Any) -> Verdict:
    text = graph if graph.startswith("g (") else f"g (float[batch, seq] x) => (float[?, ?] y) {{ {graph} }}"
    model = onnx.parser.parse_model(HEAD + text)
    names = [value.name for value in model.graph.input]
    with Reference(Module(function), flatten) as reference:
        return verify(
            VerifyRequest(
                model=model.SerializeToString(),
                output_names=[value.name for value in model.graph.output],
                reference=reference,
                make=make,
                feeds=lambda inputs: dict(zip(names, map(to_array, inputs.args), strict=True)),
                domain=Box(),
                sizes=sizes,
                options=VerifyOptions(**options),
            )
        )


def test_a_right_file_passes_at_every_size() -> None:
    verdict = judge(lambda x: torch.softmax(x, -1), "y = Softmax(x)")
    assert verdict.passed
    assert list(verdict.tried) == SIZES
    assert verdict.passed_sizes == verdict.tried
    assert verdict.floor == "float64 eager"
    assert [error.output for error in verdict.outputs] == ["y"]
    assert 0 <= verdict.outputs[0].worst <= verdict.outputs[0].allowed
    assert verdict.trials > len(SIZES)


def test_errors_are_known_at_each_size_that_is_right_and_at_no_other() -> None:
    verdict = judge(lambda x: torch.softmax(x, -1), "y = Softmax(x)")
    compared = [dict(each.sizes) for each in verdict.compared]
    assert sorted(map(str, compared)) == sorted(map(str, SIZES))
    assert max(each.errors["y"] for each in verdict.compared) == verdict.outputs[0].worst
    wrong = judge(lambda x: x * x.shape[1], "t = Constant <value = float {3}> ()\ny = Mul(x, t)")
    assert wrong.failures
    assert {each.sizes["seq"] for each in wrong.compared} == {3}


def test_nothing_tried_is_not_passed() -> None:
    assert not judge(lambda x: x, "y = Identity(x)", sizes=[]).passed


def test_a_failure_has_the_smallest_sizes_and_the_simplest_values() -> None:
    verdict = judge(lambda x: x + (1.0 if x.shape[1] > 3 else 0.0), "y = Identity(x)")
    assert not verdict.passed
    assert verdict.smallest_failure is not None
    assert verdict.smallest_failure.sizes == {"batch": 1, "seq": 4}
    assert verdict.smallest_failure.values == "zeros"
    difference = verdict.smallest_failure.difference
    assert difference is not None
    assert (difference.mismatch, difference.output, difference.expected, difference.actual) == (
        Mismatch.VALUE,
        "y",
        1.0,
        0.0,
    )
    assert {failure.sizes["seq"] for failure in verdict.failures} == {12}
    assert len(verdict.passed_sizes) == 6


def test_a_frozen_shape_is_a_failure_of_the_runtime_with_its_sizes() -> None:
    text = "shape = Constant<value_ints = [6]>()  flat = Reshape(x, shape)  s = Shape(x)  y = Reshape(flat, s)"
    verdict = judge(lambda x: x, text)
    assert verdict.smallest_failure is not None
    assert verdict.smallest_failure.kind is FailureKind.RAISED
    assert verdict.smallest_failure.sizes == {"batch": 1, "seq": 1}
    assert "Reshape" in verdict.smallest_failure.message
    assert len(verdict.failures) == 8


@pytest.mark.parametrize(
    ("branch", "values"),
    [
        (
            lambda x: x * 2 if x.sum() > 0 else x + 100,
            {
                "random",
                "negated",
                "zeros",
                "signed-zeros",
                "large",
                "small",
                "repeated",
                "few-numbers",
                "mixed",
                "equal",
            },
        ),
        (lambda x: x + 100 if bool((x == 0).all()) else x * 2, {"zeros", "signed-zeros"}),
        (lambda x: x + 100 if x.abs().max() > 50 else x * 2, {"large"}),
        (
            lambda x: x + 100 if x.numel() > 1 and bool((x == x[0, 0]).all()) else x * 2,
            {"repeated", "zeros", "signed-zeros"},
        ),
    ],
    ids=["sign", "zeros", "large", "repeated"],
)
def test_a_branch_on_values_that_was_baked_in_is_noticed(branch: Callable[..., Any], values: set[str]) -> None:
    verdict = judge(branch, "y = Add(x, x)")
    assert not verdict.passed
    assert {failure.values for failure in verdict.failures} <= values


def test_a_baked_mask_is_noticed() -> None:
    def masks(sizes: Mapping[str, int], seed: int) -> Call:
        return Call((*make(sizes, seed).args, torch.ones(sizes["batch"], sizes["seq"], dtype=torch.bool)))

    text = "g (float[b, s] x, bool[b, s] m) => (float[b, s] y) { y = Identity(x) }"
    verdict = judge(lambda x, m: x * m, text, make=masks)
    assert {failure.values for failure in verdict.failures} == {"all-false", "partial-masks"}


def test_values_that_the_module_refuses_or_answers_with_nan_are_set_aside() -> None:
    def picky(x: torch.Tensor) -> torch.Tensor:
        if x.abs().max() > 50:
            raise ValueError("too large")
        return x / x.abs().sum()

    graph = "a = Abs(x)  s = ReduceSum<keepdims = 0>(a)  y = Div(x, s)"
    verdict = judge(picky, graph)
    assert verdict.passed
    assert set(verdict.set_aside) == {
        "large: the module refuses them",
        "zeros: the module answers without finite numbers",
    }


def test_sizes_that_the_module_refuses_are_recorded_and_no_failure() -> None:
    def even(x: torch.Tensor) -> torch.Tensor:
        if x.shape[1] % 2:
            raise ValueError(f"odd: {x.shape[1]}")
        return x

    verdict = judge(even, "y = Identity(x)")
    assert verdict.passed
    assert {refusal.sizes["seq"] for refusal in verdict.refused} == {1, 3}
    assert verdict.refused[0].message.startswith("ValueError: odd")
    assert {refusal.file_answers for refusal in verdict.refused} == {True}
    assert verdict.refused[0].source is not None
    assert "raise ValueError" in verdict.refused[0].source.text
    assert {sizes["seq"] for sizes in verdict.tried} == {12}


def test_a_file_that_refuses_where_the_module_does_is_told_from_one_that_answers() -> None:
    def only_six(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(6).view(x.shape)

    graph = "shape = Constant<value_ints = [6]>()  flat = Reshape(x, shape)  s = Shape(x)  y = Reshape(flat, s)"
    verdict = judge(only_six, graph)
    assert verdict.passed
    assert verdict.tried == ({"batch": 2, "seq": 3},)
    assert {refusal.file_answers for refusal in verdict.refused} == {False}


def test_a_module_that_refuses_everything_has_not_passed() -> None:
    def never(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("never")

    verdict = judge(never, "y = Identity(x)")
    assert not verdict.passed
    assert len(verdict.refused) == len(SIZES)


def test_a_file_that_cannot_be_loaded_fails_once() -> None:
    verdict = judge(lambda x: x, 'g (uint16[a, b] x) => (uint16[a, b] y) { y = BitShift<direction = "LEFT">(x, x) }')
    assert [failure.kind for failure in verdict.failures] == [FailureKind.UNSUPPORTED]
    assert verdict.smallest_failure == verdict.failures[0]
    wrong = judge(lambda x: x, "g (float[a, b] x) => (float[a, b] y) { y = Unknown(x) }")
    assert [failure.kind for failure in wrong.failures] == [FailureKind.REJECTED]


ENDLESS = """
  small = Constant<value_ints = [3]>()
  shape = Shape<start = 1>(x)
  same = Equal(shape, small)
  flag = Squeeze(same)
  go = Not(flag)
  most = Constant<value = int64 {9223372036854775807}>()
  y = Loop(most, go, x) <body = b (int64 i, bool c, float[n, m] s) => (bool c2, float[n, m] s2) {
    c2 = Identity(c)
    s2 = Neg(s)
  }>
"""


def test_a_hang_is_a_failure_with_its_sizes_and_the_rest_goes_on() -> None:
    sizes = [{"batch": 1, "seq": 3}, {"batch": 2, "seq": 5}, {"batch": 2, "seq": 3}]
    verdict = judge(lambda x: x, ENDLESS, sizes=sizes, time_limit_s=0.5, shrink_tries=2)
    assert {failure.kind for failure in verdict.failures} == {FailureKind.TIMED_OUT}
    assert [failure.sizes for failure in verdict.failures] == [{"batch": 2, "seq": 5}]
    assert len(verdict.passed_sizes) == 2
    assert verdict.smallest_failure is not None
    assert verdict.smallest_failure.kind is FailureKind.TIMED_OUT


def test_a_run_takes_no_longer_than_the_whole_verification_may() -> None:
    verdict = judge(lambda x: -x, ENDLESS, sizes=[{"batch": 2, "seq": 5}], clock_s=0.5, locate_s=0.0, shrink_tries=0)
    assert "longer than 0.5 s" in verdict.failures[0].message


def test_want_of_memory_is_a_failure_with_its_sizes() -> None:
    text = """
      s = Shape<start = 1>(x)
      big = Constant<value_ints = [68719476736]>()
      two = Constant<value_ints = [2]>()
      over = Less(two, s)
      n = Cast<to = 7>(over)
      much = Mul(n, big)
      zeros = ConstantOfShape(much)
      sum = ReduceSum<keepdims = 0>(zeros)
      y = Add(x, sum)
    """
    verdict = judge(lambda x: x, text)
    assert {failure.kind for failure in verdict.failures} == {FailureKind.OUT_OF_MEMORY}
    assert verdict.smallest_failure is not None
    assert verdict.smallest_failure.sizes == {"batch": 1, "seq": 3}
    assert len(verdict.passed_sizes) == 3


def test_a_spent_budget_is_said() -> None:
    verdict = judge(lambda x: x, "y = Identity(x)", clock_s=0.0)
    assert verdict.trials == 1
    assert verdict.passed
    assert len(verdict.tried) + len(verdict.untried) == len(SIZES)
    assert verdict.untried[0].why == "the comparisons had run for 0 s"


def test_the_users_tolerance_replaces_the_floor() -> None:
    graph = "d = Constant<value_float = 0.001>()  y = Add(x, d)"
    assert not judge(lambda x: x, graph).passed
    assert not judge(lambda x: x, graph, rtol=1e-5).passed
    loose = judge(lambda x: x, graph, atol=0.01)
    assert loose.passed
    assert loose.floor == "the user's"


def test_progress_is_told_with_its_total() -> None:
    seen: list[tuple[int, int]] = []
    judge(lambda x: x, "y = Identity(x)", progress=lambda done, total, sizes: seen.append((done, total)))
    assert [done for done, _ in seen] == list(range(seen[0][1]))


def test_a_rounded_value_on_the_edge_is_no_failure_but_a_wrong_one_is() -> None:
    def edgy(sizes: Mapping[str, int], seed: int) -> Call:
        return Call((make(sizes, seed).args[0].round() + 0.1,))

    # 0.1 * 5 is 0.5 only up to rounding: which way it rounds is noise.
    graph = "five = Constant<value_float = 5.0>()  z = Mul(x, five)  y = Round(z)"
    assert judge(lambda x: (x / 0.2).round(), graph, make=edgy).passed
    assert not judge(lambda x: (x / 0.2).round() + 1, graph, make=edgy).passed


@pytest.mark.parametrize("times", ["", " two = Constant<value_int = 2>() y = Mul(i, two)"], ids=["alone", "used"])
@pytest.mark.parametrize("last", [0, 1])
def test_argmax_takes_the_first_of_equal_values(times: str, last: int) -> None:
    choose = f"i = ArgMax<axis = 1, keepdims = 0, select_last_index = {last}>(x)"
    body = f"{choose}{times}" if times else choose.replace("i =", "y =")
    verdict = judge(lambda x: x.argmax(1) * (2 if times else 1), f"g (float[b, s] x) => (int64[b] y) {{ {body} }}")
    assert verdict.passed is (last == 0)


def test_the_order_of_equal_values_is_free_where_torch_leaves_it_open() -> None:
    """The positions of the highest values, summed with weights: what differs is nowhere an index."""
    text = """g (float[b, s] x) => (float[b] y) { one = Constant<value_ints = [2]>() w = Constant<value_floats = [1.0, 10.0]>()
      v, i = TopK<axis = 1>(%s, one) f = Cast<to = 1>(%s) p = Mul(f, w) a = Constant<value_ints = [1]>()
      y = ReduceSum<keepdims = 0>(p, a) }"""
    last_first = """g (float[b, s] x) => (float[b] y) { two = Constant<value_ints = [2]>()
      w = Constant<value_floats = [1.0, 10.0]>() minus = Constant<value_ints = [-1]>() zero = Constant<value_ints = [-1000]>()
      a = Constant<value_ints = [1]>() turned = Slice(x, minus, zero, a, minus) v, j = TopK<axis = 1>(turned, two)
      s = Shape<start = 1>(x) top = Sub(s, a) i = Sub(top, j) f = Cast<to = 1>(i) p = Mul(f, w)
      y = ReduceSum<keepdims = 0>(p, a) }"""

    def weighed(x: torch.Tensor) -> torch.Tensor:
        return (x.topk(2, 1).indices * torch.tensor([1.0, 10.0])).sum(1)

    sizes = [{"batch": 2, "seq": seq} for seq in (5, 3, 9)]
    for file in (text % ("x", "i"), last_first):
        assert judge(weighed, file, sizes=sizes).passed
    lowest = text.replace("TopK<axis = 1>", "TopK<axis = 1, largest = 0>") % ("x", "i")
    assert not judge(weighed, lowest, sizes=sizes).passed


@pytest.mark.parametrize(("operator", "expected"), [("ArgMax", True), ("Neg", False)])
def test_an_operator_that_chooses_is_found_in_a_branch_too(tmp_path: Path, operator: str, expected: bool) -> None:
    then = f"then_branch = t () => (float[?] a) {{ a = {operator}(x) }}"
    other = "else_branch = e () => (float[?] b) { b = Abs(x) }"
    text = f"g (bool c, float[n] x) => (float[?] y) {{ y = If(c) <{then}, {other}> }}"
    onnx.save(onnx.parser.parse_model(HEAD + text), tmp_path / "m.onnx")
    assert chooses_among_values(str(tmp_path / "m.onnx")) is expected


def test_a_python_number_is_an_output() -> None:
    body = "t = Shape<start = 1>(x)  n = Squeeze(t)  f = Constant<value_float = {}>()"
    text = f"g (float[b, s] x) => (int64 n, float f) {{{{ {body} }}}}"
    assert judge(lambda x: (x.shape[1], 0.1), text.format(0.1)).passed
    assert not judge(lambda x: (x.shape[1], 0.1), text.format(0.2)).passed
    assert not judge(lambda x: (x.shape[0], 0.1), text.format(0.1)).passed


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_floats_are_compared_in_their_own_precision(dtype: torch.dtype) -> None:
    def narrow(sizes: Mapping[str, int], seed: int) -> Call:
        return Call((make(sizes, seed).args[0].to(dtype),))

    name = str(dtype).removeprefix("torch.")
    code = {"float16": 10, "bfloat16": 16}[name]
    wrap = (
        f"g ({name}[b, s] x) => ({name}[b, s] y) {{{{ w = Cast<to = 1>(x)  e = {{}}(w)  y = Cast<to = {code}>(e) }}}}"
    )
    assert judge(torch.sigmoid, wrap.format("Sigmoid"), make=narrow).passed
    assert not judge(torch.sigmoid, wrap.format("Tanh"), make=narrow).passed


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    torch.manual_seed(3)
    before = torch.get_rng_state()

    def rude(sizes: Mapping[str, int], seed: int) -> Call:
        torch.manual_seed(seed)
        return Call((torch.randn(sizes["batch"], sizes["seq"]),))

    judge(lambda x: x, "y = Neg(x)", make=rude)
    assert list(tmp_path.iterdir()) == []
    assert torch.equal(torch.get_rng_state(), before)


def test_a_verdict_can_be_said_in_json() -> None:
    verdict = judge(lambda x: x, "nan = Constant<value_float = nan>()  y = Add(x, nan)")
    plain = json.loads(json.dumps(as_plain(verdict)))
    assert plain["passed"] is False
    assert plain["smallest_failure"]["difference"]["mismatch"] == "nan"
    assert plain["smallest_failure"]["difference"]["actual"] == "nan"
    assert np.isfinite(plain["seconds"])


def test_finite_numbers_of_a_partly_infinite_answer_are_compared() -> None:
    def overflowing(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([torch.exp(x * 2).sum(), x.clamp(max=40.0).sum()])

    graph = "two = Constant<value_float = 2.0>()  t = Mul(x, two)  e = Exp(t)  s = ReduceSum<keepdims = 0>(e)"
    join = "axis = Constant<value_ints = [0]>()  a = Unsqueeze(s, axis)  b = Unsqueeze(c, axis)  y = Concat<axis = 0>(a, b)"
    text = "g (float[b, s] x) => (float[2] y) {{ {} {} {} }}"
    limit = "high = Constant<value_float = 40.0>()  m = Min(x, high)  c = ReduceSum<keepdims = 0>(m)"
    right = judge(overflowing, text.format(graph, limit, join))
    assert right.passed
    assert set(right.set_aside) == {"large: the module answers without finite numbers"}
    wrong = judge(overflowing, text.format(graph, "c = ReduceSum<keepdims = 0>(x)", join))
    assert {failure.values for failure in wrong.failures} == {"large"}
