"""Rows that are chosen by scores which rounding cannot tell apart may change places; no others may."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
import torch
from tests.verify_calls import Call, request_of

from anyshape.records.verdict import Verdict
from anyshape.verify import Reference, VerifyOptions, verify
from anyshape.verify.choices import Watched
from anyshape.verify.near_ties import move_near_ties
from anyshape.verify.ties import look_at_choices

FAR = 2_000.0  # single precision keeps multiples of 0.00012 of numbers near two thousand


class BestRows(torch.nn.Module):
    """Rows of four numbers, the best ones first: scores are far from 0 and close to each other, as logits with a bias are."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = (x[..., 0] + FAR) + x[..., 1] + x[..., 2] + x[..., 3]
        rows = scores.topk(8, dim=1).indices
        return x.gather(1, rows[..., None].expand(-1, -1, 4))


def make(sizes: Any, seed: int) -> Call:
    return Call((0.1 * torch.randn(sizes["b"], 64, 4, generator=torch.Generator().manual_seed(seed)),))


def verdict_on(largest: int = 1, shift: int = 0) -> Verdict:
    """Of a file that adds up in another order, which takes the lowest ones, or the best ones after the first."""
    text = f"""<ir_version: 10, opset_import: ["" : 21]> g (float[b, 64, 4] x) => (float[b, 8, 4] y)
      <float far = {{{FAR}}}, int64[1] last = {{-1}}, int64[1] k = {{{8 + shift}}}, int64[1] from = {{{shift}}},
       int64[1] to = {{100}}, int64[1] one = {{1}}> {{
      sum = ReduceSum<keepdims = 0>(x, last) s = Add(sum, far) v, top = TopK<axis = 1, largest = {largest}>(s, k)
      i = Slice(top, from, to, one) j = Unsqueeze(i, last) shape = Constant<value_ints = [1, 1, 4]>() w = Expand(j, shape)
      y = GatherElements<axis = 1>(x, w) }}"""
    with Reference(BestRows(), lambda outputs: [("y", outputs)]) as reference:
        sizes = [{"b": 2}, {"b": 60}, {"b": 61}]
        options = VerifyOptions(locate_s=0.0, shrink_tries=0)
        return verify(request_of(onnx.parser.parse_model(text), reference, make, sizes, options=options))


def test_rows_that_rounding_may_swap_are_no_failure() -> None:
    assert verdict_on().passed


@pytest.mark.parametrize("wrong", [{"largest": 0}, {"shift": 1}])
def test_rows_of_other_scores_are_noticed(wrong: dict[str, int]) -> None:
    assert not verdict_on(**wrong).passed


def test_values_of_the_inputs_are_ordered_without_rounding() -> None:
    class Ordered(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x.topk(2).values, (x + 1).topk(2).values

    near = Call((torch.tensor([1.0, 1.0 + 2**-23, 3.0]),))
    with Reference(Ordered(), lambda outputs: [("0", outputs[0]), ("1", outputs[1])]) as reference:
        answer: Any = reference.run(near)
        exact, computed = look_at_choices(Watched(reference.run, near), answer.arrays, answer.arrays).ordered
    assert not exact.rounding
    assert computed.rounding > 0


def test_products_before_the_first_order_are_computed_once() -> None:
    """The rows that follow from another order are those of a whole run in that order."""

    class Scored(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.score, self.mix = torch.nn.Linear(4, 1), torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            hidden = self.mix(x).relu_()  # which writes into the product
            rows = (self.score(hidden).squeeze(-1) * 1e-6 + FAR).topk(3, dim=1).indices
            return self.mix(hidden.gather(1, rows[..., None].expand(-1, -1, 4)))

    inputs = make({"b": 2}, 0)
    with Reference(Scored(), lambda outputs: [("y", outputs)]) as reference:
        answer: Any = reference.run(inputs)
        watched = Watched(reference.run, inputs)
        ordered = look_at_choices(watched, answer.arrays, answer.arrays).ordered
        quick = list(move_near_ties(reference, inputs, answer.arrays, ordered, watched.products))
        whole = list(move_near_ties(reference, inputs, answer.arrays, ordered))
    assert [kept is not None for _, kept in watched.products] == [True, True]
    assert len(quick) == len(whole) > 2
    assert all((one == other).all() for (one,), (other,) in zip(quick, whole, strict=True))
    assert quick[-1][0].any()


class Marked(torch.nn.Module):
    """Rows in the order of their scores."""

    def __init__(self, scores: torch.Tensor) -> None:
        super().__init__()
        self.scores = torch.nn.Parameter(scores)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[(self.scores + x.sum() * 0).topk(x.shape[0]).indices]


def sensitivity_of(module: torch.nn.Module, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The module's answer, and how far other orders of near scores move it."""
    call = Call((rows,))
    with Reference(module, lambda outputs: [("y", outputs)]) as reference:
        answer: Any = reference.run(call)
        ordered = look_at_choices(Watched(reference.run, call), answer.arrays, answer.arrays).ordered
        *_, (found,) = move_near_ties(reference, call, answer.arrays, ordered)
    return torch.as_tensor(answer.arrays[0]), torch.as_tensor(found)


def test_rows_of_a_long_group_may_come_from_either_side() -> None:
    scores = 1 - torch.arange(40) * 2.0**-24
    answer, found = sensitivity_of(Marked(scores), 100.0 * (torch.arange(40) == 20))
    (place,) = (answer == 100).nonzero().reshape(-1).tolist()
    assert (found[place - 3 : place + 4] == 100).all()


def test_equal_scores_may_also_be_in_the_order_of_a_stable_sort() -> None:
    scores = torch.arange(40).repeat_interleave(2).float()
    rows = torch.arange(80.0)
    answer, found = sensitivity_of(Marked(scores), rows)
    stable = rows[scores.sort(descending=True, stable=True).indices]
    assert (answer != stable).any()  # or else this shows nothing
    assert ((answer - stable).abs() <= found).all()
