"""The record that everything downstream uses, and what it says of a module that refuses what we made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from anyshape.domain import Expr, Ref
from anyshape.findings import DeclarationError
from anyshape.inputs import Inputs, declare, explain_bad_inputs, is_bad_value


class Scaled(nn.Module):
    def forward(self, x: Any, k: Any = 1, scale: Any = 1.0, mode: str = "fast", y: Any = None) -> Any:
        return x * k * scale if mode == "fast" else x


def declared_call() -> Any:
    inputs = Inputs((torch.ones(3, 2), 4, 0.5, "fast"), {"y": torch.ones(3, dtype=torch.bfloat16)})
    return declare(Scaled(), inputs, dynamic={"x": "n 2", "y": "n", "k": {"value": "top"}, "scale": "value"})


def test_open_leaves_are_tensors_and_scalars() -> None:
    declared = declared_call()
    assert [leaf.path for leaf in declared.open_leaves] == ["x", "k", "scale", "y"]
    assert [leaf.path for leaf in declared.tensor_leaves] == ["x", "y"]
    assert declared.constants == {"mode": "fast"}
    assert [leaf.file_dtype for leaf in declared.open_leaves] == ["float32", "int64", "float32", "bfloat16"]


def test_a_number_is_an_expression_or_none() -> None:
    by_path = {leaf.path: leaf for leaf in declared_call().leaves}
    assert by_path["k"].number == Ref("top") and by_path["k"].is_open_number
    assert by_path["scale"].number is None and by_path["scale"].is_open_number
    assert by_path["mode"].number is None and not by_path["mode"].is_open_number


def test_rebuild_takes_all_values_or_the_open_ones() -> None:
    declared = declared_call()
    flat = declared.flat(declared.example)
    for values in (flat, declared.open_values(declared.example)):
        again = declared.rebuild(values)
        assert again.args[1:] == (4, 0.5, "fast") and set(again.kwargs) == {"y"}
        assert torch.equal(declared.call(Scaled(), again), torch.full((3, 2), 2.0))


def test_elements_count_every_input() -> None:
    assert declared_call().elements({"n": 5, "top": 3}) == 5 * 2 + 1 + 1 + 5


def test_feeds_are_arrays_by_name() -> None:
    declared = declared_call()
    feeds = declared.feeds(declared.make({"n": 5, "top": 9}, 2))
    assert {name: (str(array.dtype), array.shape) for name, array in feeds.items()} == {
        "x": ("float32", (5, 2)),
        "k": ("int64", ()),
        "scale": ("float32", ()),
        "y": ("bfloat16", (5,)),
    }
    assert int(feeds["k"]) == 9 and isinstance(feeds["x"], np.ndarray)


def test_feeds_of_bfloat16_keep_the_values() -> None:
    declared = declare(nn.Identity(), torch.tensor([0.5, -2.0], dtype=torch.bfloat16), dynamic="n")
    assert declared.feeds(declared.example)["input"].astype("float32").tolist() == [0.5, -2.0]


def test_inputs_of_another_structure_are_refused() -> None:
    with pytest.raises(DeclarationError, match="AS024"):
        declared_call().flat(torch.ones(3, 2))


def test_outputs_are_named_by_the_user_first() -> None:
    declared = declare(nn.Identity(), torch.ones(3), output_names=["logits"])
    assert declared.name_outputs(["output.0", "output.1"]) == ("logits", "output.1")


def test_an_output_never_takes_the_name_of_an_input() -> None:
    assert declare(Scaled(), torch.ones(3)).name_outputs(["x", "z"]) == ("output.x", "z")


def test_names_on_outputs_are_kept_for_later() -> None:
    dynamic = {"x": {0: "batch"}, "output": {0: "batch", 1: "found"}}
    declared = declare(Scaled(), torch.ones(3, 2), dynamic=dynamic, output_names=["output"])
    assert declared.output_axes == {"output": {0: Ref("batch"), 1: Ref("found")}}
    axes: dict[int, Expr] = {0: Ref("batch")}
    words = declare(Scaled(), lambda batch: torch.ones(batch), dynamic={"output": "batch _"})
    assert words.output_axes == {"output": axes}


def test_a_declaration_can_be_pasted_back() -> None:
    declared = declare(Scaled(), (torch.ones(3, 2), 4), dynamic={"x": "n 2", "k": "value"})
    assert declared.paste == 'dynamic={"x": "n 2", "k": "value"}'
    again = declare(Scaled(), (torch.ones(3, 2), 4), **eval(f"dict({declared.paste})"))
    assert again.domain == declared.domain and again.leaves == declared.leaves


def test_a_paste_of_auto_means_the_same() -> None:
    module = nn.Bilinear(4, 5, 3)
    example = (torch.randn(2, 4), torch.randn(2, 5))
    declared = declare(module, example, dynamic="auto")
    assert declared.paste == 'dynamic={"input1": "input1_0 4", "input2": "input1_0 5"}'
    assert [note.code for note in declared.notes] == ["AS056", "AS032", "AS032"]


def test_nothing_declared_is_noted() -> None:
    declared = declare(Scaled(), torch.ones(3))
    assert [note.code for note in declared.notes] == ["AS028"] and declared.source == "static"
    assert declared.domain.names == ()


class Lookup(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 4)
        self.place = nn.Embedding(16, 4)

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        out = self.table(ids) + self.place(torch.arange(ids.shape[1]))
        return out[torch.arange(ids.shape[0]), lengths - 1]


def refusal(declared: Any, sizes: dict[str, int], seed: int = 1) -> Exception:
    with pytest.raises(Exception) as caught:
        declared.call(Lookup(), declared.make(sizes, seed))
    return caught.value


EXAMPLE = (torch.randint(0, 10, (3, 8)), torch.tensor([8, 6, 7]))


def test_values_that_we_made_are_our_fault() -> None:
    declared = declare(Lookup(), EXAMPLE, dynamic={"ids": "b t", "lengths": "b"})
    sizes = {"b": 2, "t": 1}
    error = refusal(declared, sizes)
    finding = explain_bad_inputs(Lookup(), declared, sizes, error)
    assert is_bad_value(error) and finding is not None
    assert finding.code == "AS027" and "'lengths'" in finding.what and "def inputs(b=3, t=8)" in finding.fix


def test_a_limit_of_the_module_is_not_our_fault() -> None:
    declared = declare(Lookup(), EXAMPLE, dynamic={"ids": "b t", "lengths": "b"})
    sizes = {"b": 2, "t": 20}
    assert explain_bad_inputs(Lookup(), declared, sizes, refusal(declared, sizes)) is None


def test_values_of_the_users_own_function_are_not_our_fault() -> None:
    declared = declare(Lookup(), lambda b, t: (torch.full((b, t), 99), torch.ones(b, dtype=torch.int64)))
    sizes = {"b": 2, "t": 4}
    assert explain_bad_inputs(Lookup(), declared, sizes, refusal(declared, sizes)) is None


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (IndexError("index out of range in self"), True),
        (RuntimeError("index 5 is out of bounds for dimension 0 with size 3"), True),
        (RuntimeError("Length of all samples has to be greater than 0, but found an element that is <= 0"), True),
        (RuntimeError("Expected `len(lengths)` to be equal to batch_size, must match"), True),
        (RuntimeError("offsets[0] has to be 0, i.e., the first sequence has to start from position 0"), True),
        (
            RuntimeError("The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0"),
            False,
        ),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)"), False),
        (AssertionError("expected 5 frames"), False),
    ],
)
def test_errors_that_speak_of_values_are_known(error: Exception, expected: bool) -> None:
    assert is_bad_value(error) is expected
