"""Texts and keys of sizes on paths that only some sizes take: a file is right there, or the line is named; none is proved."""

from __future__ import annotations

import enum
from operator import attrgetter
from string import Template
from typing import NamedTuple

import pytest
import torch
from torch import nn

import anyshape

END = 340


class Chosen(nn.Module):
    """What a function of the module and the input gives."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer
        self.table = {"310": 3.0, "333": 5.0}
        self.scale = {307: 2.0, 339: 4.0}
        self.gain_333 = 5.0
        self.heads = nn.ModuleDict({f"s{n}": nn.Linear(4, 4) for n in (300, 333)})
        self.usual = nn.Linear(4, 4)

    def forward(self, x):
        return self.answer(self, x)


def by_digits(module, x):
    n = x.shape[0]
    if n > 256:
        return x * 2 if "77" in str(n) else x * 3
    return x + 1


def by_part(module, x):
    n = x.shape[0]
    if n > 200:
        key = f"s{n}"
        if key in module.heads:
            return module.heads[key](x)
    return module.usual(x)


def long_path(module, x):
    return x * module.table.get(str(x.shape[0]), 1.0)


def by_table_of_texts(module, x):
    return long_path(module, x) if x.shape[0] >= 300 else x


def by_hash(module, x):
    n = x.shape[0]
    return x if n <= 128 else x * (1 + hash((n, 3)) % 5)


def by_key(module, x):
    n = x.shape[0]
    return x * module.scale.get(n, 1.0) if n > 290 else x


def by_text_of_multiples(module, x):
    n = x.shape[0]
    if n % 64 == 0:
        return x * 2 if "8" in f"{n}" else x * 5
    return x


def by_text_in_the_middle(module, x):
    n = x.shape[0]
    if n > 150:
        if n > 300:
            return x - 1
        return x * 2 if str(n).endswith("99") else x * 3
    return x


def by_text_made_before(module, x):
    name = str(x.shape[0])
    if x.shape[0] > 256:
        return x * 2 if name.count("3") == 2 else x * 3
    return x


def by_text_of_the_half(module, x):
    n = x.shape[0]
    if n > 100 and n % 2 == 0:
        return x * 2 if f"{n // 2:b}".startswith("110") else x * 3
    return x


def by_name_of_a_part(module, x):
    n = x.shape[0]
    if n > 256:
        try:
            return module.get_submodule(f"heads.s{n}")(x)
        except AttributeError:
            return x * 2
    return module.usual(x)


def by_attribute_getter(module, x):
    n = x.shape[0]
    if n > 256:
        try:
            return attrgetter(f"gain_{n}")(module) * x
        except AttributeError:
            return x * 2
    return x


class Kind(enum.Enum):
    SPECIAL = "s333"


def by_value_of_an_enum(module, x):
    if x.shape[0] > 256:
        try:
            Kind(f"s{x.shape[0]}")
        except ValueError:
            return x * 2
    return x


class Pair(NamedTuple):
    n: int
    width: int


def by_text_of_a_named_tuple(module, x):
    pair = Pair(*x.shape)
    return x * 2 if x.shape[0] > 256 and str(pair) == "Pair(n=333, width=4)" else x


def by_template(module, x):
    if x.shape[0] > 256:
        return x * module.table.get(Template("$n").substitute(n=x.shape[0]), 2.0)
    return x


FAR = (
    by_digits,
    by_part,
    by_table_of_texts,
    by_hash,
    by_key,
    by_text_of_multiples,
    by_text_in_the_middle,
    by_text_made_before,
    by_text_of_the_half,
    by_name_of_a_part,
    by_attribute_getter,
    by_value_of_an_enum,
    by_text_of_a_named_tuple,
    by_template,
)


def inputs(n=5):
    return torch.randn(n, 4)


@pytest.mark.parametrize("answer", FAR)
def test_a_text_on_a_far_path_is_right_or_named(answer, tmp_path) -> None:
    module = Chosen(answer).eval()
    try:
        result = anyshape.export(module, inputs, tmp_path / "m.onnx", where=[f"n <= {END}"], strategy="symbolic")
    except anyshape.PromiseBroken as broken:
        assert "test_far_texts.py:" in str(broken)
        return
    assert not result.contract.tested.capture_proved
    loaded = anyshape.load(tmp_path / "m.onnx")
    for n in range(1, END + 1):
        x = inputs(n)
        torch.testing.assert_close(torch.as_tensor(loaded(x)), module(x).detach(), msg=f"n={n}")


def test_a_part_per_size_on_a_far_path_is_right_at_every_size(tmp_path) -> None:
    module = Chosen(by_part).eval()
    anyshape.export(module, inputs, tmp_path / "m.onnx", where=[f"n <= {END}"])
    loaded = anyshape.load(tmp_path / "m.onnx")
    for n in (1, 5, 200, 201, 299, 300, 301, 332, 333, 334, END):
        x = inputs(n)
        torch.testing.assert_close(torch.as_tensor(loaded(x)), module(x).detach(), msg=f"n={n}")


def test_a_refusal_names_the_line_of_the_far_text(tmp_path) -> None:
    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(Chosen(by_digits), inputs, tmp_path / "m.onnx", where=[f"n <= {END}"], strategy="symbolic")
    assert "no rule follows how n is used at" in str(broken.value)
    assert 'return x * 2 if "77" in str(n) else x * 3' in str(broken.value)


class TwoDims(nn.Module):
    def forward(self, x):
        b, t = x.shape
        if b * t > 200:
            return x - 1 if str(t).endswith("3") else x + 1
        return x


def test_a_text_of_one_of_two_dims_is_found(tmp_path) -> None:
    with pytest.raises(anyshape.PromiseBroken) as broken:
        where = ["b <= 20", "t <= 120"]
        anyshape.export(TwoDims(), lambda b=2, t=5: torch.randn(b, t), tmp_path / "m", where=where, strategy="symbolic")
    assert 'str(t).endswith("3")' in str(broken.value)


def unused_text(module, x):
    name = f"a batch of {x.shape[0]}"
    if x.shape[0] > 256:
        module.told = name
        return x * 2
    return x


def unused_far_text(module, x):
    if x.shape[0] > 256:
        name = f"a batch of {x.shape[0]}"
        module.told = name
        return x * 2
    return x


def asserted_text(module, x):
    n = x.shape[0]
    torch._assert(n > 0, f"a batch of {n}")
    with torch.profiler.record_function(f"batch {n}"):
        return x * 2 if n > 256 else x


@pytest.mark.parametrize("answer", [unused_text, unused_far_text, asserted_text])
def test_a_text_with_which_nothing_is_done_ends_no_range(answer, tmp_path) -> None:
    result = anyshape.export(Chosen(answer), inputs, tmp_path / "m.onnx")
    assert result.strategy == "symbolic"
    assert not [finding for finding in result.findings if finding.code == "AS132"]


def _key_of(n):
    return f"s{n}"


def by_returned_key(module, x):
    return x * module.steps.get(_key_of(x.shape[0]), 1.0) if x.shape[0] > 256 else x


def by_missing_part(module, x):
    if x.shape[0] < 280:
        return module.usual(x)
    try:
        return module.heads[_key_of(x.shape[0])](x)
    except KeyError:
        return module.usual(x)


def by_text_that_a_part_of_the_code_returns_twice(module, x):
    return x * module.steps.get(_passed_on(x.shape[0]), 1.0) if x.shape[0] > 256 else x


def _passed_on(n):
    return _key_of(n)


@pytest.mark.parametrize("answer", [by_returned_key, by_missing_part, by_text_that_a_part_of_the_code_returns_twice])
def test_a_text_that_a_function_returns_is_followed(answer, tmp_path) -> None:
    module = Chosen(answer).eval()
    module.steps = {"s310": 3.0}
    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(module, inputs, tmp_path / "m.onnx", where=[f"n <= {END}"], strategy="symbolic")
    assert "the model looks up n in a table" in str(broken.value)


def by_own_cache(module, x):
    key = _key_of(x.shape[0])
    if key not in module.told:
        module.told[key] = x.shape[0] * 2
    return x * module.told[key]


def test_a_cache_with_a_key_of_its_own_ends_no_range(tmp_path) -> None:
    module = Chosen(by_own_cache)
    module.told = {}
    result = anyshape.export(module, inputs, tmp_path / "m.onnx")
    assert not [finding for finding in result.findings if finding.code == "AS132"]
