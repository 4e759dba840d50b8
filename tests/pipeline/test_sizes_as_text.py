"""Sizes that become texts, keys or bits: a file is right at each size that it promises, or it is refused with the line."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

import anyshape
from anyshape.explore import find_unfollowed
from anyshape.inputs import declare
from anyshape.modules.unfollowed_uses import watch_uses

NAMES = {"307", "411"}


class Chosen(nn.Module):
    """Goes another way where the condition holds of the first size."""

    def __init__(self, condition):
        super().__init__()
        self.condition = condition
        self.table = {307: 1, 411: 2}
        self.cache = {}

    def forward(self, x):
        return x * 2 if self.condition(self, x.shape[0]) else x + 1


def by_padded_text(module, n):
    return f"{n:04d}".startswith("03")


def by_last_digit(module, n):
    return ("%d" % n)[-1] == "7"  # noqa: UP031 - a form of text that models use


def by_member_of_texts(module, n):
    return str(n) in NAMES


def by_key(module, n):
    return module.table.get(n) is not None


def by_bits(module, n):
    return bool(n & 64)


def by_rest(module, n):
    return divmod(n, 97)[1] == 3


def by_rounding(module, n):
    return round(n, -1) == 310 and round(n, 2) == n


def by_digits(module, n):
    return sum(int(digit) for digit in str(n)) == 11


def inputs(n=5):
    return torch.randn(n, 4)


@pytest.mark.parametrize(
    "condition", [by_padded_text, by_last_digit, by_member_of_texts, by_key, by_bits, by_rest, by_rounding]
)
def test_a_file_is_right_at_every_size(condition, tmp_path) -> None:
    module = Chosen(condition)
    anyshape.export(module, inputs, tmp_path / "m.onnx", where=["1 <= n <= 450"])
    loaded = anyshape.load(tmp_path / "m.onnx")
    for n in range(1, 451):
        x = inputs(n)
        assert torch.equal(torch.as_tensor(loaded(x)), module(x)), n


def test_a_range_without_end_ends_where_each_size_was_compared(tmp_path) -> None:
    module = Chosen(by_member_of_texts)
    result = anyshape.export(module, inputs, tmp_path / "m.onnx")
    (end,) = [finding for finding in result.findings if finding.code == "AS132"]
    assert "by_member_of_texts:   return str(n) in NAMES" in end.why
    assert end.sizes["n"] < 2000


def test_a_refusal_has_the_line_that_nothing_follows(tmp_path) -> None:
    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(Chosen(by_digits), inputs, tmp_path / "m.onnx", where=["1 <= n <= 450"])
    assert "return sum(int(digit) for digit in str(n)) == 11" in str(broken.value)


def by_gcd(module, n):
    return math.gcd(n, 60) == 15


def by_number(module, n):
    print(f"a batch of {n}")
    return n > 377


def by_absent_limit(module, n):
    limit = module.table.get("no limit")
    return (limit is not None and n >= limit) or n == limit


def by_own_cache(module, n):
    key = f"{n}x4"
    if key not in module.cache:
        module.cache[key] = n > 40
    return module.cache[key]


@pytest.mark.parametrize(
    ("condition", "is_found"),
    [
        (by_padded_text, True),
        (by_key, True),
        (by_bits, True),
        (by_rest, True),
        (by_digits, True),
        (by_gcd, True),
        (by_number, False),
        (by_absent_limit, False),
        (by_own_cache, False),
    ],
)
def test_a_use_that_nothing_follows_is_found(condition, is_found) -> None:
    module = Chosen(condition)
    declared = declare(module, inputs)

    def watch(sizes):
        module.cache.clear()
        return watch_uses(lambda: module(inputs(**sizes)))

    assert list(find_unfollowed(declared, watch, lambda sizes: True)) == (["n"] if is_found else [])


def test_a_text_that_is_only_printed_leaves_a_capture_proved(tmp_path) -> None:
    result = anyshape.export(Chosen(by_number), inputs, tmp_path / "m.onnx")
    assert result.strategy == "symbolic"
    assert not [finding for finding in result.findings if finding.code == "AS132"]


class Xored(nn.Module):
    def forward(self, x):
        return x * (x.shape[0] ^ 5)


def test_a_capture_that_fails_without_a_line_names_the_use_that_nothing_follows(tmp_path) -> None:
    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(Xored(), inputs, tmp_path / "m.onnx", strategy="symbolic")
    assert "in Xored.forward:   return x * (x.shape[0] ^ 5)" in str(broken.value)


class OnOneLine(nn.Module):
    """The text and what it decides are on one line: the name has no value before that line runs."""

    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({"48": nn.Linear(1, 1), "70": nn.Linear(1, 1)})
        self.base = nn.Linear(1, 1)

    def forward(self, x):
        return (self.heads[key] if (key := str(x.shape[0])) in self.heads else self.base)(x[..., None])


def test_a_text_that_is_named_and_used_on_one_line_is_seen(tmp_path) -> None:
    model, path = OnOneLine().eval(), tmp_path / "m.onnx"
    anyshape.export(model, lambda n=5: torch.randn(n, 2), path, where=["n <= 100"])
    load = anyshape.load(path)
    for n in (5, 48, 49, 70):
        x = torch.randn(n, 2)
        np.testing.assert_allclose(load(x).numpy(), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)
