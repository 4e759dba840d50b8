"""Nested values come apart into leaves with paths, and go together again."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

from anyshape.findings import DeclarationError, InternalError, PromiseBroken
from anyshape.inputs.tree import flatten, flatten_outputs

Pair = namedtuple("Pair", "left right")


@dataclass
class Plain:
    logits: torch.Tensor
    hidden: torch.Tensor | None = None


@dataclass(frozen=True)
class WithInit:
    total: int = field(init=False, default=7)
    x: Any = None


class Registered:
    def __init__(self, weight: Any, bias: Any) -> None:
        self.weight, self.bias = weight, bias


torch.utils._pytree.register_pytree_node(
    Registered, lambda value: ([value.weight, value.bias], None), lambda items, _: Registered(*items)
)

X, Y = torch.zeros(2), torch.ones(3)

PATHS: list[tuple[str, Any, list[str]]] = [
    ("a tensor", X, [""]),
    ("a tuple", (X, Y), ["0", "1"]),
    ("a list in a dict", {"xs": [X, Y]}, ["xs.0", "xs.1"]),
    ("nested tuples", {"past": ((X, Y), (X, Y))}, ["past.0.0", "past.0.1", "past.1.0", "past.1.1"]),
    ("a named tuple", Pair(X, {"same": Y}), ["left", "right.same"]),
    ("a plain dataclass", Plain(X, Y), ["logits", "hidden"]),
    ("a dataclass with None", Plain(X), ["logits"]),
    ("None in the middle", (X, None, Y), ["0", "2"]),
    ("whole numbers as keys", {0: X, 1: Y}, ["0", "1"]),
    ("Python values", (1, 2.5, True, "mode"), ["0", "1", "2", "3"]),
    ("a registered class", {"layer": Registered(X, Y)}, ["layer.0", "layer.1"]),
    ("what torch.max gives", torch.eye(2).max(dim=1), ["values", "indices"]),
    ("an ordered dict", OrderedDict(b=X, a=Y), ["b", "a"]),
    ("nothing at all", (), []),
]


@pytest.mark.parametrize(("value", "paths"), [row[1:] for row in PATHS], ids=[row[0] for row in PATHS])
def test_paths_are_what_a_person_writes(value: Any, paths: list[str]) -> None:
    assert [path for path, _ in flatten(value)[0]] == paths


@pytest.mark.parametrize("value", [row[1] for row in PATHS], ids=[row[0] for row in PATHS])
def test_rebuild_is_the_way_back(value: Any) -> None:
    leaves, structure = flatten(value)
    again = structure.rebuild([leaf for _, leaf in leaves])
    assert type(again) is type(value)
    assert flatten(again) == (leaves, structure)


def test_rebuild_gives_fresh_containers() -> None:
    leaves, structure = flatten({"xs": [X]})
    one, two = (structure.rebuild([X]) for _ in range(2))
    one["xs"].append(Y)
    assert len(two["xs"]) == 1 and len(leaves) == 1


def test_a_dataclass_is_built_without_its_init() -> None:
    leaves, structure = flatten(WithInit(x=X))
    assert structure.rebuild([9, X]).total == 9
    assert [path for path, _ in leaves] == ["total", "x"]


def test_a_default_dict_comes_back_as_one() -> None:
    value = defaultdict(list, {"a": X})
    leaves, structure = flatten(value)
    assert dict(structure.rebuild([leaf for _, leaf in leaves])) == {"a": X}


def test_numpy_arrays_are_tensors_and_numpy_numbers_are_numbers() -> None:
    frozen = np.arange(3, dtype=np.int32)
    frozen.flags.writeable = False
    (_, array), (_, number) = flatten((frozen, np.float32(0.5)))[0]
    assert isinstance(array, torch.Tensor) and array.dtype == torch.int32
    assert number == 0.5 and type(number) is float


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", lambda: None, np.array(["text"])])
def test_an_unknown_object_is_refused(value: Any) -> None:
    with pytest.raises(DeclarationError, match="AS010 unknown-container"):
        flatten({"x": value})


def test_too_few_leaves_are_our_own_fault() -> None:
    _, structure = flatten((X, Y))
    with pytest.raises(InternalError):
        structure.rebuild([X])


def test_outputs_are_named_by_key_or_by_position() -> None:
    assert [path for path, _ in flatten_outputs(X)] == ["output"]
    assert [path for path, _ in flatten_outputs((X, [Y]))] == ["output.0", "output.1.0"]
    assert [path for path, _ in flatten_outputs({"logits": X})] == ["logits"]
    assert [path for path, _ in flatten_outputs(Plain(X, Y))] == ["logits", "hidden"]


@pytest.mark.parametrize("value", ["cat", torch.float32, object()], ids=["string", "dtype", "object"])
def test_an_output_that_no_file_has_is_named(value: Any) -> None:
    with pytest.raises(PromiseBroken) as caught:
        flatten_outputs({"y": torch.ones(2), "extra": value})
    assert (caught.value.finding.code, "'extra'" in caught.value.finding.what) == ("AS156", True)


NOT_DENSE = {
    "coo": lambda: torch.eye(3).to_sparse(),
    "csr": lambda: torch.eye(3).to_sparse_csr(),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
}


@pytest.mark.parametrize("form", NOT_DENSE)
@pytest.mark.filterwarnings("ignore")  # torch calls them a prototype
def test_a_tensor_that_is_not_dense_is_neither_input_nor_output(form: str) -> None:
    tensor = NOT_DENSE[form]()
    with pytest.raises(DeclarationError, match=r"AS158 tensor-not-dense: input 'x\.graph' is a"):
        flatten({"graph": tensor}, "x")
    with pytest.raises(PromiseBroken, match="AS158 tensor-not-dense: the model returns 'output'"):
        flatten_outputs(tensor)
