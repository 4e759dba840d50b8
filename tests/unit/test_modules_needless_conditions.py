"""Conditions on sizes are recorded only where their answer changes something."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import anyshape
from anyshape.capture.rerolled.growth import may_grow
from anyshape.domain import Dim, Domain, parse_condition
from anyshape.intercept.needless_conditions import find_needless_truth


class _Condition:
    """An object whose truth is asked: keeps the answer that was found for it."""

    def __init__(self, otherwise: bool) -> None:
        self.found: list[bool | None] = []
        self._otherwise = otherwise

    def __bool__(self) -> bool:
        answer = find_needless_truth(sys._getframe(1))
        self.found.append(answer)
        return self._otherwise if answer is None else answer


class _Options:
    def __init__(self, causal: bool) -> None:
        self.causal = causal

    @property
    def computed(self) -> bool:
        return False


def joined(long: Any, mask: Any, causal: Any) -> Any:
    causal = long and mask is None and causal
    return bool(causal)


def branched(long: Any, mask: Any, causal: Any) -> int:
    if long and mask is None:
        return 1
    return 2


def either(long: Any, mask: Any, causal: Any) -> int:
    if long or mask is None:
        return 1
    return 2


def negated(long: Any, mask: Any, causal: Any) -> int:
    if not long and causal:
        return 1
    return 2


def by_attribute(long: Any, mask: Any, causal: _Options) -> int:
    return 1 if long and causal.causal else 2


def by_property(long: Any, mask: Any, causal: _Options) -> int:
    return 1 if long and causal.computed else 2


def by_call(long: Any, mask: Any, causal: Callable[[], bool]) -> int:
    return 1 if long and causal() else 2


def in_statement(long: Any, mask: Any, causal: Any) -> Any:
    if long:
        mask = causal
    return mask


ROWS: list[tuple[Callable[..., Any], Any, Any, bool]] = [
    (joined, 5, True, True),
    (joined, None, True, False),
    (joined, None, False, True),
    (branched, 5, None, True),
    (branched, None, None, False),
    (either, None, None, True),
    (either, 5, None, False),
    (negated, None, False, True),
    (negated, None, True, False),
    (by_attribute, None, _Options(False), True),
    (by_attribute, None, _Options(True), False),
    (by_property, None, _Options(False), False),
    (by_call, None, lambda: False, False),
    (in_statement, 1, 2, False),
]


@pytest.mark.parametrize(("function", "mask", "causal", "is_needless"), ROWS)
def test_an_answer_is_found_only_where_both_answers_have_one_effect(
    function: Callable[..., Any], mask: Any, causal: Any, is_needless: bool
) -> None:
    asked, *results = (_Condition(True), *(function(answer, mask, causal) for answer in (True, False)))
    assert function(asked, mask, causal) in results
    assert (asked.found[0] is not None) == is_needless
    assert not is_needless or results[0] == results[1]


class _Attention(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None, causal: bool = True) -> torch.Tensor:
        causal = x.shape[1] > 1 and mask is None and causal
        return torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask, is_causal=causal)


def test_a_condition_beside_a_mask_that_is_given_leaves_no_guard() -> None:
    def inputs(batch: int = 3, seq: int = 5) -> dict[str, torch.Tensor]:
        return {"x": torch.randn(batch, seq, 8), "mask": torch.ones(batch, seq, seq, dtype=torch.bool)}

    result = anyshape.export(_Attention(), inputs, where=["batch <= 8", "seq <= 16"])
    captured = result.attempts[0].captured
    assert captured is not None and not any(guard.by_user for guard in captured.guards)


def test_a_program_that_holds_at_far_larger_sizes_has_no_loop_over_the_dim() -> None:
    domain = Domain((Dim("seq"), Dim("batch", max=8)))
    assert not may_grow("seq", 5, [parse_condition("seq > 1")], domain)
    assert not may_grow("seq", 6, [parse_condition("seq % 2 == 0")], domain)
    assert may_grow("seq", 5, [parse_condition("seq == 5")], domain)
    assert may_grow("seq", 5, [parse_condition("seq > 4"), parse_condition("seq <= 8")], domain)
    assert not may_grow("batch", 3, [parse_condition("batch > 1")], domain)
    assert may_grow("batch", 3, [parse_condition("batch <= 3")], domain)
    assert may_grow("batch", 7, [parse_condition("batch > 1")], domain)  # nothing larger to compare with
