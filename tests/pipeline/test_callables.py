"""Models that are no modules: functions, methods, partials and exported programs are exported; others are named."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch

import anyshape
from anyshape.findings import PromiseBroken, UsageError
from anyshape.modules.callables import as_module
from anyshape.modules.user_code import user_functions

LINEAR = torch.nn.Linear(4, 2)
SHIFT = torch.arange(4.0)


def double(x, mask):
    return (x + SHIFT) * mask[:, None] * 2


def baked(x, mask):
    return (x * mask[:, None]).reshape(3, 4)


def scaled(x, mask, scale=2.0, *, shift):
    return x * scale + shift * mask[:, None]


def outer():
    blocks = [torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)]

    def inner(x, mask):
        for block in blocks:
            x = block(x)
        return x * mask[:, None]

    return inner


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 2)
        self.dropout = torch.nn.Dropout(0.5)

    def encode(self, x, mask):
        return self.dropout(self.linear(x)) * mask[:, None]


class Plain:
    def __init__(self):
        self.linear = torch.nn.Linear(4, 2)

    def __call__(self, x, mask):
        return self.linear(x) * mask[:, None]


def inputs(batch=3):
    return {"x": torch.randn(batch, 4), "mask": torch.rand(batch)}


def program() -> torch.export.ExportedProgram:
    batch = torch.export.Dim("batch", min=1, max=32)
    return torch.export.export(as_module(outer()), (), inputs(), dynamic_shapes=({"x": {0: batch}, "mask": {0: batch}}))


MODELS: dict[str, Any] = {
    "function": double,
    "lambda": lambda x, mask: LINEAR(x) * mask[:, None],
    "closure": outer(),
    "partial": functools.partial(scaled, shift=3.0),
    "method": Encoder().encode,
    "object": Plain(),
    "no_grad": torch.no_grad()(double),
    "compiled": torch.compile(double),
    "program": program(),
}


def eager(name: str) -> Any:
    """The model as Python computes it, in eval mode."""
    special = {"compiled": lambda: double, "program": MODELS["program"].module, "method": encoder_in_eval_mode}
    return special.get(name, lambda: MODELS[name])()


def encoder_in_eval_mode() -> Any:
    return MODELS["method"].__self__.eval().encode


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.long_table
def test_a_callable_is_exported_under_the_names_of_its_parameters(name: str, tmp_path: Path) -> None:
    model = MODELS[name]
    result = anyshape.export(model, inputs, tmp_path / "m.onnx", where=["1 <= batch <= 32"], budget=5)
    assert result.is_kept
    assert [tensor.name for tensor in result.contract.inputs] == ["x", "mask"]
    given = inputs(batch=7)
    with torch.no_grad():
        expected = eager(name)(**given)
    torch.testing.assert_close(anyshape.load(tmp_path / "m.onnx")(**given), expected)


def test_the_line_of_a_function_is_named() -> None:
    with pytest.raises(PromiseBroken) as caught:
        anyshape.export(baked, inputs, where=["1 <= batch <= 8"])
    assert caught.value.finding.code == "AS102"
    assert "test_callables.py" in str(caught.value) and "in baked" in str(caught.value)


def test_the_code_of_a_function_is_the_users_code() -> None:
    assert [each.__name__ for each in user_functions(as_module(double))] == ["double"]
    assert [each.__name__ for each in user_functions(as_module(functools.partial(scaled, shift=1)))] == ["scaled"]
    assert "encode" in [each.__name__ for each in user_functions(as_module(Encoder().encode))]


def test_modules_and_tensors_of_a_function_belong_to_its_module() -> None:
    assert set(dict(as_module(outer()).named_parameters())) == {
        f"blocks_{index}.{name}" for index in (0, 1) for name in ("weight", "bias")
    }
    assert "SHIFT" in dict(as_module(double).named_buffers())
    assert set(dict(as_module(Encoder().encode).named_parameters())) == {"self.linear.weight", "self.linear.bias"}


def test_an_exported_program_refuses_sizes_that_it_was_not_exported_for() -> None:
    with pytest.raises(PromiseBroken) as caught:
        anyshape.export(program(), inputs, where=["1 <= batch <= 64"])
    assert "32" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("net.pt", "a path, 'net.pt'"),
        (Path("net.pt"), "a path, 'net.pt'"),
        (Encoder().state_dict(), "a dict of 2 tensors"),
        (Encoder, "the class Encoder, not an instance of it"),
        (torch.jit.script(torch.nn.functional.relu6), "torch.jit.script"),
        (onnx.ModelProto(), "an ONNX model already"),
        (torch.ones(2), "a tensor"),
        (None, "None"),
        (3, "of the type builtins.int"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_no_model_is_named(value: Any, words: str) -> None:
    for call in (lambda: anyshape.export(value, inputs), lambda: anyshape.check("none.onnx", value, inputs)):
        with pytest.raises(UsageError) as caught:
            call()
        assert caught.value.finding.code == "AS063" and words in caught.value.finding.what


@pytest.mark.parametrize(
    ("value", "fix"),
    [(Encoder, "Encoder()"), (torch.nn.Linear, "Linear(...)")],
)
def test_the_fix_for_what_is_no_model_can_be_pasted(value: Any, fix: str) -> None:
    with pytest.raises(UsageError) as caught:
        anyshape.export(value, inputs)
    assert caught.value.finding.fix == fix


class Nested(torch.nn.Module):
    def forward(self, pair, *, scale):
        return pair[0] @ pair[1] * scale


def test_compat_takes_the_example_and_the_dynamic_axes_of_a_program(tmp_path: Path) -> None:
    rows, columns = torch.export.Dim("rows", min=1, max=16), torch.export.Dim("columns", min=2)
    program = torch.export.export(
        Nested(),
        ((torch.randn(3, 4), torch.randn(4, 5)),),
        {"scale": torch.tensor(2.0)},
        dynamic_shapes={"pair": ({0: rows}, {1: columns}), "scale": {}},
    )
    result = anyshape.compat.export(program, f=tmp_path / "m.onnx")
    assert result.is_kept
    first, second = result.contract.domain.dims
    assert (first.min, first.max, second.max) == (1, 16, None)
    loaded = anyshape.load(tmp_path / "m.onnx")
    left, right, scale = torch.randn(16, 4), torch.randn(4, 9), torch.tensor(3.0)
    torch.testing.assert_close(loaded((left, right), scale=scale), left @ right * 3)


def test_a_function_of_torch_is_a_model() -> None:
    one = anyshape.export(torch.tanh, torch.randn(3, 4), dynamic=({0: "batch"},))
    two = anyshape.export(torch.add, (torch.randn(3, 4), torch.randn(3, 4)), dynamic=({0: "batch"}, ({0: "batch"},)))
    assert str(one.contract.inputs[0]) == "input: float32[batch, 4]" and one.is_kept
    assert [str(axis) for tensor in two.contract.inputs for axis in tensor.axes] == ["batch", "4"] * 2


@pytest.mark.parametrize(
    ("model", "words"),
    [(torch.nn.LazyLinear(3), "a lazy module"), (torch.nn.Linear(4, 3, device="meta"), "on the meta device")],
    ids=["lazy", "meta"],
)
@pytest.mark.filterwarnings("ignore")
def test_parameters_without_values_are_named(model: torch.nn.Module, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        anyshape.export(model, torch.randn(3, 4))
    assert caught.value.finding.code == "AS031" and "'weight'" in caught.value.finding.what
    assert words in (caught.value.finding.why or "")
