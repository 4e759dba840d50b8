"""Among equal values another index is as good; an index of another value is wrong, in ordinary draws too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from tests.verify_calls import Call, request_of

from anyshape.records.verdict import Verdict
from anyshape.verify import Reference, VerifyOptions, verify
from anyshape.verify.choices import Watched, watch_choices
from anyshape.verify.noise import Yardstick
from anyshape.verify.ties import look_at_choices

TABLE = [0.5, -1.0, 2.0, 0.25]


class Of(torch.nn.Module):
    """A score for each token; tokens repeat, so scores are equal in every draw."""

    def __init__(self, function: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.register_buffer("table", torch.tensor(TABLE))
        self.function = function

    def forward(self, tokens: torch.Tensor) -> Any:
        return self.function(self.table[tokens])


def make(sizes: Any, seed: int) -> Call:
    return Call((torch.randint(0, 4, (sizes["b"], 12), generator=torch.Generator().manual_seed(seed)),))


def verdict_on(function: Callable[[torch.Tensor], Any], choose: str) -> Verdict:
    text = f"""<ir_version: 10, opset_import: ["" : 21]> g (int64[b, 12] x) => (int64[b, n] y)
      <float[4] table = {{0.5, -1.0, 2.0, 0.25}}> {{ s = Gather<axis = 0>(table, x) {choose} }}"""
    with Reference(Of(function), lambda outputs: [("y", outputs)]) as reference:
        return verify(
            request_of(
                onnx.parser.parse_model(text),
                reference,
                make,
                [{"b": 2}, {"b": 5}],
                options=VerifyOptions(locate_s=0.0, shrink_tries=0),
            )
        )


LAST = "y = ArgMax<axis = 1, keepdims = 1, select_last_index = 1>(s)"
LOWEST = "y = ArgMin<axis = 1, keepdims = 1>(s)"
TOP = "k = Constant<value_ints = [5]>() v, y = TopK<axis = 1>(s, k)"
REVERSED = """two = Constant<value_ints = [0]>() end = Constant<value_ints = [-13]>() one = Constant<value_ints = [1]>()
  back = Constant<value_ints = [-1]>() start = Constant<value_ints = [-1]>() r = Slice(s, start, end, one, back)
  k = Constant<value_ints = [5]>() v, i = TopK<axis = 1>(r, k) last = Constant<value_int = 11>() y = Sub(last, i)"""
TWICE = (
    TOP.replace(", y =", ", i =")
    + """ z = Constant<value_ints = [0]>() o = Constant<value_ints = [1]>()
  f = Gather<axis = 1>(i, z) shape = Shape(i) y = Expand(f, shape)"""
)


@pytest.mark.parametrize(
    ("function", "choose"),
    [
        (lambda s: s.argmax(1, keepdim=True), LAST),
        (lambda s: s.topk(5, 1).indices, TOP),
        (lambda s: s.topk(5, 1).indices, REVERSED),
    ],
    ids=["the last of the largest", "the runtime's own order", "the last ones first"],
)
def test_another_index_of_the_same_value_is_no_failure(function: Callable[..., Any], choose: str) -> None:
    assert verdict_on(function, choose).passed


@pytest.mark.parametrize(
    ("function", "choose"),
    [
        (lambda s: s.argmax(1, keepdim=True), LOWEST),
        (
            lambda s: s.argmax(1, keepdim=True),
            LAST.replace("y =", "i =") + " t = Constant<value_int = 1>() y = Add(i, t)",
        ),
        (lambda s: s.topk(5, 1).indices, TOP.replace("axis = 1", "axis = 1, largest = 0")),
        (lambda s: s.topk(5, 1).indices, TWICE),
    ],
    ids=["of the smallest", "one too far", "of the smallest five", "one of them five times"],
)
def test_an_index_of_another_value_is_noticed(function: Callable[..., Any], choose: str) -> None:
    assert not verdict_on(function, choose).passed


LINE = torch.tensor([[0, 2, 1, 2, 3]])


def free(function: Callable[[torch.Tensor], Any], actual: Any, line: torch.Tensor = LINE) -> list[bool]:
    with Reference(Of(function), lambda outputs: [("y", outputs)]) as reference:
        inputs = Call((line,))
        answer: Any = reference.run(inputs)
        in_double = watch_choices(Yardstick(reference).double_answer, inputs)
        watched = Watched(reference.run, inputs)
        (places,) = look_at_choices(watched, answer.arrays, [np.array(actual)], in_double).free
    return (places > 0).reshape(-1).tolist()


def test_only_ties_are_free() -> None:
    assert free(lambda s: s.argmax(1), [3]) == [True]
    assert free(lambda s: s.argmax(1), [0]) == [False]
    assert free(lambda s: s.argmax(1), [9]) == [False]
    assert free(lambda s: s.argmax(), 3) == [True]
    assert free(lambda s: s.max(1).indices, [3]) == [True]
    assert free(lambda s: s.sort(1).indices, [[2, 4, 0, 3, 1]]) == [True] * 5
    assert free(lambda s: s.sort(1).indices, [[2, 4, 0, 3, 3]]) == [False] * 5
    assert free(lambda s: s.sort(1).indices, [[2, 0, 4, 1, 3]]) == [True, False, False, True, True]


def test_numbers_that_nobody_chose_are_not_free() -> None:
    assert free(lambda s: (s > 0).sum(1), [3]) == [False]


def test_values_that_rounding_brings_together_are_as_good_as_equal() -> None:
    def of_a_sum(s: torch.Tensor) -> torch.Tensor:
        return (s + 1e6 - 1e6).argmax(1)  # single precision keeps sixteenths of numbers near a million

    last, first = 3, 0  # a quarter and a half in the table
    assert free(lambda s: of_a_sum(0.04 * s + 0.27), [0], torch.tensor([[last, first]])) == [True]
    assert free(lambda s: of_a_sum(0.56 * s + 0.12), [0], torch.tensor([[last, first]])) == [False]
