"""Every name that is declared reaches an axis, a Python number or a value, or is an error by name; one row for each way.

A row says what the declaration means, or which code refuses it and by which name.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim

import anyshape
from anyshape import compat, sources
from anyshape.domain import format_domain
from anyshape.findings import DeclarationError, PromiseBroken, UsageError
from anyshape.inputs import Declared, declare, dim

R = torch.randn
X, M = R(3, 5), R(3, 2)


class Two(nn.Module):
    def forward(self, x: Any, mask: Any = None, k: Any = 0) -> Any:
        return x


def meaning(declared: Declared) -> str:
    """`x[batch, 5] | 1 <= batch <= 64`, and the parameters that are values."""
    tensors = [f"{leaf.path}[{', '.join(map(str, leaf.axes))}]" for leaf in declared.tensor_leaves]
    scalars = [f"{leaf.path}={leaf.value}" for leaf in declared.leaves if leaf.kind == "scalar"]
    values = [f"{value.name}?" for value in declared.values]
    return " | ".join([" ".join(tensors + scalars + values), *format_domain(declared.domain)])


def means(inputs: Any, **options: Any) -> Callable[[], str]:
    return lambda: meaning(declare(Two(), inputs, **options))


def fixed(batch: int = 3, seq: int = 5) -> torch.Tensor:
    return R(batch, 5)


def fixed_in_range(batch: int = 3, seq: int = dim(1, 64)) -> torch.Tensor:
    return R(batch, 5)


def unrelated(batch: int = 3, seq: int = 5, past: int = 2) -> torch.Tensor:
    return R(batch, seq)


def shifted(seq: int = 5, past: int = 2) -> torch.Tensor:
    return torch.arange(past, past + seq)


def padded(batch: int = 3, seq: int = 5, length: int = 4) -> tuple[torch.Tensor, ...]:
    return R(batch, seq), torch.full((batch,), length)


def square(h: int = 4, w: int = 4) -> torch.Tensor:
    return R(h, w)


def words(batch: int = 3, vocab: int = 100) -> torch.Tensor:
    return torch.randint(0, vocab, (batch,))


def unseeded(batch: int = 3, vocab: int = 100) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng().integers(0, vocab, (batch,)))


def annotated(batch: Annotated[int | None, range(1, 9)] = None) -> torch.Tensor:
    return R(batch or 4, 4)


def of_numpy(batch: int = np.int64(3)) -> torch.Tensor:  # type: ignore[assignment]
    return R(batch, 4)


def switched(batch: int = 3, n: int = 9) -> torch.Tensor:
    return R(batch, 4 if n < 5 else 8)


B8, B64 = Dim("batch", max=8), Dim("batch", max=64)
OPEN = Dim.DYNAMIC(min=2, max=8)

WAYS: dict[str, tuple[Callable[[], str], str]] = {
    # A function of sizes.
    "a parameter that no axis follows": (means(fixed), "AS068 'seq'"),
    "and its rule": (means(fixed, where=["1 <= seq <= 64"]), "AS068 'seq'"),
    "and its range": (means(fixed_in_range), "AS068 'seq'"),
    "one of a single size": (means(fixed, where=["seq == 5"]), "AS068 'seq'"),
    "a rule through it": (means(unrelated, where=["past + seq <= 16"]), "AS068 'past'"),
    "a rule through a value": (means(shifted, where=["past + seq <= 16"]), "AS068 'past'"),
    "a limit that decides nothing": (means(lambda n=3, limit=9: R(n), where=["n <= limit"]), "AS068 'limit'"),
    "a value": (means(words), "x[batch] vocab?"),
    "a value and its rule": (means(words, where=["vocab <= 100"]), "x[batch] vocab?"),
    "a value below a size": (means(padded, where=["length <= seq"]), "x[batch, seq] mask[batch] length?"),
    "a value that is a size": (means(padded, where=["length == seq"]), "x[batch, seq] mask[batch]"),
    "a value that cannot be seen": (means(unseeded), "AS068 'vocab'"),
    "a float need not be used": (means(lambda n=3, gain=0.5: R(n)), "x[n] gain?"),
    "a number": (means(lambda n=3, k=2: (R(n), R(3), k)), "x[n] mask[3] k=k"),
    "a rule that ties two axes": (means(square, where=["w == h", "w <= 64"]), "x[h, h] | 1 <= h <= 64"),
    "a rule that fixes one": (means(square, where=["h == 2", "h + w <= 16"]), "x[2, w] | 1 <= w <= 14"),
    "a tied parameter without an axis": (means(lambda h=4, w=4: R(h), where=["w == h"]), "AS068 'w'"),
    "a range beside a default of None": (means(annotated), "x[batch, 4] | 1 <= batch <= 8"),
    "a default of numpy": (means(of_numpy), "x[batch, 4]"),
    "an axis that only small values move": (means(switched), "AS017 axis 1"),
    "a rule about an unknown name": (means(square, where=["depth <= 3"]), "AS001 'depth'"),
    "names of nothing": (means(square, names={"depth": "d"}), "AS011 'depth'"),
    "a Dim beside it": (means(square, dynamic={"x": {0: Dim("h", max=8)}}), "x[h, w] | 1 <= h <= 8"),
    "a Dim of another name": (means(square, dynamic={"x": {0: B8}}), "AS030 batch"),
    "a Dim on an output": (means(square, dynamic={"y": {0: B8}}, output_names=["y"]), "AS068 'batch'"),
    "values bounded by a value": (means(words, values={"x": "0 <= x < vocab"}), "AS311 'vocab'"),
    # Words.
    "words": (means(X, dynamic="batch seq", where=["batch + seq <= 16"]), "x[batch, seq] | batch + seq <= 16"),
    "a rule about no word": (means(X, dynamic="batch 5", where=["seq <= 16"]), "AS001 'seq'"),
    "a word that cancels out": (means(X, dynamic="batch past-past+5"), "AS015 'past'"),
    "words for None": (means((X, None), dynamic={"x": "batch 5", "mask": "batch seq"}), "AS068 'mask'"),
    "words for an empty list": (means((X, []), dynamic={"x": "batch 5", "mask": {0: "seq"}}), "AS068 'mask'"),
    "values of no input": (means(X, dynamic="batch 5", values={"ids": "0 <= ids < 9"}), "AS311 'ids'"),
    "values bounded by no dim": (means(X, dynamic="batch 5", values={"x": "0 <= x <= seq"}), "AS311 'seq'"),
    # Examples.
    "examples": (means([X, R(4, 5)], where=["x_0 <= 8"]), "x[x_0, 5] | 1 <= x_0 <= 8"),
    "a rule about an axis that does not vary": (means([X, R(4, 5)], where=["x_1 <= 8"]), "AS001 'x_1'"),
    "a new name for nothing": (means([X, R(4, 5)], names={"x_1": "seq"}), "AS001 'x_1'"),
    # dynamic_axes.
    "labels": (means((X, M), dynamic={"x": {0: "b"}, "mask": {0: "b", 1: "m"}}), "x[b, 5] mask[b, m]"),
    "labels of an output that the model computes": (
        means(X, dynamic={"x": {0: "b"}, "y": {0: "b", 1: "m"}}, output_names=["y"]),
        "x[b, 5]",
    ),
    "labels of no input": (means(X, dynamic={"z": {0: "b"}}, output_names=["y"]), "AS011 'z'"),
    # dynamic_shapes, Dim.
    "a Dim": (means(X, dynamic=({0: B64},)), "x[batch, 5] | 1 <= batch <= 64"),
    "two Dims of one name": (means((X, M), dynamic=({0: B64}, {0: B8})), "AS007 'batch'"),
    "a Dim on an output alone": (
        means(X, dynamic={"x": {0: "b"}, "y": {0: Dim("rows", max=8)}}, output_names=["y"]),
        "AS068 'rows'",
    ),
    "a Dim for a float": (means((X, M, 2.5), dynamic={"k": Dim("scale", max=4)}), "AS068 'scale'"),
    "an open axis with a range": (means(X, dynamic={"x": {0: OPEN}}), "x[x_0, 5] | 2 <= x_0 <= 8"),
    "one with several examples": (means([X, R(4, 5)], dynamic={"x": {0: OPEN}}), "x[x_0, 5] | 2 <= x_0 <= 8"),
    "one that moves with another": (
        means([(X, R(6)), (R(4, 5), R(8))], dynamic={"mask": {0: OPEN}}),
        "x[x_0, 5] mask[2*x_0] | 1 <= x_0 <= 4",
    ),
}


def outcome(call: Callable[[], Any]) -> str:
    try:
        return str(call())
    except (DeclarationError, PromiseBroken, UsageError) as error:
        return str(error)


@pytest.mark.parametrize("name", WAYS)
def test_a_declared_name_reaches_the_inputs_or_is_an_error_by_name(name: str) -> None:
    call, wanted = WAYS[name]
    said = outcome(call)
    if wanted.startswith("AS"):
        code, _, named = wanted.partition(" ")
        assert said.startswith(code) and named in said.splitlines()[0]
    else:
        assert said == wanted


FILE = """
import torch
def model(): return torch.nn.ReLU()
def inputs(batch=3, seq=5): return torch.randn(batch, {size})
def net(): return torch.nn.ReLU()
where = ["1 <= seq <= 64"]
net_where = ["1 <= seq <= 8"]
"""


@pytest.mark.parametrize(
    ("size", "name", "wanted"),
    [(5, "", "AS068"), ("seq", "", "1 <= seq <= 64"), ("seq", ":net", "1 <= seq <= 8"), (5, ":net", "AS068")],
)
def test_the_names_of_a_model_file_reach_the_inputs(tmp_path: Path, size: object, name: str, wanted: str) -> None:
    file = tmp_path / "model.py"
    file.write_text(FILE.format(size=size))
    (part,) = sources.resolve(f"{file}{name}").parts
    said = outcome(lambda: meaning(declare(part.model, part.inputs, dynamic=part.dynamic, where=part.where)))
    assert wanted in said


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"dynamic_shapes": ({0: B64},), "dynamic_axes": {"x": {1: "seq"}}}, "AS037"),
        ({"dynamic_axes": {"z": {0: "batch"}}}, "AS029"),
        ({"dynamic_axes": {"x": {0: "batch"}}, "input_names": ["y"]}, "batch >= 0"),
        ({"dynamic_shapes": ({0: B64},)}, "1 <= batch <= 64"),
    ],
)
def test_the_names_of_compat_export_reach_the_inputs(options: dict[str, Any], wanted: str) -> None:
    def exported() -> str:
        result = compat.export(Two(), (X,), **options)
        return " | ".join(format_domain(result.contract.domain))

    assert wanted in outcome(exported)


def test_axes_refuses_a_parameter_that_no_axis_follows_and_shows_a_value() -> None:
    assert "AS068" in outcome(lambda: anyshape.axes(nn.ReLU(), fixed))
    assert "parameter past decides values, and no axis" in str(anyshape.axes(Two(), shifted))


def test_values_keep_their_rules_at_every_size() -> None:
    declared = declare(Two(), padded, where=["length <= seq"])
    for seq in (1, 2, 9):
        for seed in range(6):
            made = declared.flat(declared.make({"batch": 2, "seq": seq}, seed))
            assert int(made[1].max()) <= seq
    equal = declare(Two(), padded, where=["length == seq"])
    assert equal.flat(equal.make({"batch": 2, "seq": 9}, 3))[1].tolist() == [9, 9]
