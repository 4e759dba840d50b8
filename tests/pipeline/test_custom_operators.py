"""The user's own operators, from the module to the file: translated, inlined, kept as a node, or refused with a template."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import torch
from onnxscript import opset18 as op

import anyshape
from anyshape.contract import find_contract
from anyshape.findings import AnyshapeError
from anyshape.records.contract import contract_as_plain
from anyshape.report.text import describe_export

Tensor = torch.Tensor
library = torch.library.Library("ops_test", "FRAGMENT")


@torch.library.custom_op("ops_test::plain", mutates_args=())
def plain(x: Tensor, factor: float = 2.0) -> Tensor:
    return x * torch.arange(x.shape[1], dtype=x.dtype) * factor


@torch.library.custom_op("ops_test::opaque", mutates_args=())
def opaque(x: Tensor, factor: float = 2.0, *, shift: int = 1) -> Tensor:
    return torch.from_numpy(x.numpy() * factor + shift).to(x.dtype)


@torch.library.custom_op("ops_test::change", mutates_args=("x",))
def change(x: Tensor) -> None:
    x.mul_(2)


@torch.library.custom_op("ops_test::overwrite", mutates_args=("x", "y"))
def overwrite(x: Tensor, y: Tensor, factor: float = 3.0) -> Tensor:
    x.mul_(factor).add_(x.shape[1])
    y[:, :1] = x[:, :1]
    return x + y


@torch.library.custom_op("ops_test::change_outside", mutates_args=("x",))
def change_outside(x: Tensor) -> None:
    np.multiply(x.numpy(), 2, out=x.numpy())


@torch.library.custom_op("ops_test::shapeless_sum", mutates_args=())
def shapeless_sum(factor: float, x: Tensor, y: Tensor) -> Tensor:
    return factor * x + y


@torch.library.custom_op("ops_test::shapeless", mutates_args=())
def shapeless(x: Tensor) -> Tensor:
    return x * 2


@torch.library.custom_op("ops_test::split_signs", mutates_args=())
def split_signs(x: Tensor, low: Tensor | None = None) -> tuple[Tensor, Tensor]:
    array = x.numpy()
    return torch.from_numpy(array.clip(0)), torch.from_numpy(array < 0)


plain.register_fake(lambda x, factor=2.0: torch.empty_like(x))
overwrite.register_fake(lambda x, y, factor=3.0: torch.empty_like(x))
opaque.register_fake(lambda x, factor=2.0, *, shift=1: torch.empty_like(x))
split_signs.register_fake(lambda x, low=None: (torch.empty_like(x), torch.empty_like(x, dtype=torch.bool)))

for name, body in {
    "on_cpu": lambda x: x + x.shape[0],
    "branches": lambda x: x * 2 if x.shape[0] > 4 else torch.ops.ops_test.on_cpu(x) + 100,
    "asks": lambda x: x * float(x.sum()),
}.items():
    library.define(f"{name}(Tensor x) -> Tensor")
    library.impl(name, body, "CPU")
    torch.library.register_fake(f"ops_test::{name}", lambda x: torch.empty_like(x), lib=library)

library.define("composite(Tensor x) -> Tensor")
library.impl("composite", lambda x: x.sin() + 1, "CompositeImplicitAutograd")


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * torch.sigmoid(x) / x.shape[1]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        return gradient


class Calls(torch.nn.Module):
    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


def inputs(batch: int = 3, seq: int = 5) -> Tensor:
    return torch.randn(batch, seq)


def export(function: Callable[[Tensor], Any], path: Path | None = None, **options: Any) -> anyshape.Export:
    return anyshape.export(Calls(function), inputs, path, **options)


def refusal(function: Callable[[Tensor], Any], **options: Any) -> str:
    with pytest.raises(AnyshapeError) as refused:
        export(function, **options)
    return "\n".join(line for line in str(refused.value).splitlines() if not line.startswith("  Where:"))


def in_onnx(x: Any, factor: float, shift: int) -> Any:
    return op.Add(op.Mul(x, op.Constant(value_float=factor)), op.Constant(value_float=float(shift)))


def in_numpy(x: Any, *, factor: float, shift: int) -> Any:
    return (x * factor + shift).astype(x.dtype)


# Translated.


def test_a_registered_translation_is_used_and_the_schema_fills_in_defaults() -> None:
    with anyshape.translation("ops_test::opaque", in_onnx):
        result = export(lambda x: opaque(x, shift=3))
    assert result.is_kept
    assert result.contract.needs == ()


def test_a_translation_goes_before_the_body() -> None:
    with anyshape.translation("ops_test::plain", lambda x, factor: op.Identity(x)):
        assert "AS305 wrong-values" in refusal(plain)
    assert export(plain).is_kept


def test_a_translation_goes_before_the_decomposition() -> None:
    with anyshape.translation("ops_test::composite", lambda x: op.Identity(x)):
        assert "AS305 wrong-values" in refusal(torch.ops.ops_test.composite)
    assert export(torch.ops.ops_test.composite).is_kept


def test_a_translation_may_be_registered_before_its_operator_exists() -> None:
    with anyshape.translation("ops_test::later", lambda x: op.Add(x, x)):
        later = torch.library.custom_op("ops_test::later", mutates_args=())(_later)
        later.register_fake(lambda x: torch.empty_like(x))
        assert export(later).is_kept


def _later(x: Tensor) -> Tensor:
    return torch.from_numpy(x.numpy() * 2)


def test_translations_of_a_call_are_by_name_or_by_operator() -> None:
    for target in ("ops_test::opaque", "ops_test::opaque.default", torch.ops.ops_test.opaque.default):
        assert export(opaque, translations={target: in_onnx}).is_kept


def test_torchs_own_operators_can_be_translated_too() -> None:
    with anyshape.translation("aten::relu", lambda x: op.Neg(x)):
        assert "AS305 wrong-values" in refusal(torch.relu)


def test_a_translation_of_no_operator_is_a_note_where_the_model_has_one_of_almost_that_name() -> None:
    with anyshape.translation("ops_test::plian", lambda x, factor: op.Identity(x)):
        (note,) = export(plain).findings
        assert (note.code, note.severity.value) == ("AS204", "note")
        assert "'ops_test::plain'" in note.why
        assert export(torch.relu).findings == ()


# Inlined.


@pytest.mark.parametrize(
    "function",
    [plain, torch.ops.ops_test.on_cpu, torch.ops.ops_test.branches, lambda x: Swish.apply(x)],
    ids=["custom_op", "library", "nested and branching", "autograd.Function"],
)
def test_a_body_of_plain_torch_is_inlined(function: Callable[[Tensor], Any]) -> None:
    result = export(function)
    assert result.is_kept
    assert result.contract.needs == ()


def test_what_is_inlined_keeps_the_line_of_the_call() -> None:
    result = export(plain)
    sources = {node.metadata_props.get("anyshape.source", "") for node in result.model.graph if node.op_type == "Mul"}
    assert sources and all("test_custom_operators.py" in source for source in sources)


# Kept as a node.


def test_a_kept_node_is_compared_and_loaded(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    with anyshape.translation("ops_test::opaque", in_numpy, node="mylib::Opaque"):
        result = export(lambda x: opaque(x.relu(), 3.0) - 1, path)
        assert [node.op_type for node in result.model.graph if node.domain == "mylib"] == ["Opaque"]
        assert anyshape.check(path, Calls(lambda x: opaque(x.relu(), 3.0) - 1), inputs).passed
        assert anyshape.load(path)(np.ones((1, 2), np.float32)).tolist() == [[3, 3]]
    assert result.contract.needs == ("mylib::Opaque",)
    assert "  needs   mylib::Opaque" in describe_export(result)
    written = find_contract(path)
    assert written is not None and written.needs == result.contract.needs
    schema = json.loads(resources.files("anyshape.contract").joinpath("contract-v1.schema.json").read_text("utf-8"))
    jsonschema.validate(contract_as_plain(written), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**contract_as_plain(written), "needs": ["Opaque"]}, schema)
    with pytest.raises(AnyshapeError, match="AS058"):
        anyshape.load(path)
    with pytest.raises(AnyshapeError, match="AS058"):
        anyshape.check(path, Calls(opaque), inputs)
    given = anyshape.load(path, operators={"mylib::Opaque": in_numpy})
    assert given(np.ones((1, 2), np.float32)).tolist() == [[3, 3]]


def test_calls_of_a_file_in_pieces_keep_its_contract(tmp_path: Path) -> None:
    with anyshape.translation("ops_test::opaque", in_numpy, node="mylib::Opaque"):
        export(opaque, tmp_path / "m.onnx", where=["batch <= 4"])
        with pytest.raises(anyshape.ContractBroken, match="AS402"):
            anyshape.load(tmp_path / "m.onnx")(np.ones((5, 2), np.float32))


def test_a_wrong_function_is_found_like_a_wrong_translation() -> None:
    with anyshape.translation("ops_test::opaque", lambda x, factor, shift: x, node="mylib::Opaque"):
        assert "AS305 wrong-values" in refusal(opaque)
    with anyshape.translation("ops_test::opaque", lambda x, factor, shift: 1 / 0, node="mylib::Opaque"):
        assert "mylib::Opaque raised ZeroDivisionError" in refusal(opaque)


def test_a_kept_node_may_stand_in_a_branch_and_give_several_values() -> None:
    def model(x: Tensor) -> Any:
        positive, below = split_signs(x, x.abs())
        return (opaque(positive) if x.shape[0] > 3 else positive), below

    with (
        anyshape.translation("ops_test::opaque", in_numpy, node="mylib::Opaque"),
        anyshape.translation("ops_test::split_signs", lambda x, low: (x.clip(0), x < 0), node="mylib::Split"),
    ):
        result = export(model)
    assert result.contract.needs == ("mylib::Opaque", "mylib::Split")
    assert "If" in {node.op_type for node in result.model.graph}


@pytest.mark.parametrize("opset", [19, 21])
def test_a_kept_node_survives_another_opset(opset: int) -> None:
    with anyshape.translation("ops_test::opaque", in_numpy, node="mylib::Opaque"):
        result = export(opaque, opset=opset)
    assert result.model.opset_imports["mylib"] == 1
    assert result.contract.opset == opset


def test_a_node_that_nobody_can_run_is_refused() -> None:
    import onnx_ir as ir
    import onnxscript.evaluator

    def by_hand(x: Any, factor: float, shift: int) -> Any:
        node = ir.node("ByHand", [x], domain="mylib", version=1)
        onnxscript.evaluator.default().nodes.append(node)
        return node.outputs[0]

    with anyshape.translation("ops_test::opaque", by_hand):
        assert refusal(opaque).startswith("AS058 operator-not-given: the file would need mylib::ByHand")


# Refused.

GOLDEN = """\
AS201 operator-without-translation: operator ops_test::opaque has no translation to ONNX.
  Why:    neither torch.onnx nor anyshape knows how to write it.
          its Python body cannot be followed: RuntimeError: .numpy() is not supported for tensor subclasses.   (FILE)
  Fix (not tried): say how, with onnxscript (from onnxscript import opset18 as op):
          @anyshape.translation("ops_test::opaque")
          def opaque(x, factor, shift):
              return ...    # such as op.Mul(x, x)
  Or:     keep it as a node, which anyshape.load runs and other runtimes need:
          @anyshape.translation("ops_test::opaque", node="ops_test::opaque")
          def opaque(x, *, factor, shift):
              return ...    # numpy arrays"""

SEVERAL = """\
          @anyshape.translation("ops_test::split_signs")
          def split_signs(x, low):
              return ..., ...    # such as op.Mul(x, x)"""

CHANGES = """\
AS201 operator-without-translation: operator ops_test::change_outside has no translation to ONNX.
  Why:    neither torch.onnx nor anyshape knows how to write it.
          it changes its arguments, which no node of ONNX does.
  Fix:    let it return a new tensor in place of a change: mutates_args=()."""


def test_the_refusal_shows_the_template() -> None:
    line = opaque._init_fn.__code__.co_firstlineno + 2
    assert refusal(opaque).replace(f"tests/pipeline/test_custom_operators.py:{line}", "FILE") == GOLDEN
    assert SEVERAL in refusal(lambda x: split_signs(x)[0])


def test_the_refusal_names_the_line_of_the_call() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return opaque(x) + 1

    with pytest.raises(AnyshapeError) as refused:
        anyshape.export(Model(), inputs)
    assert str(refused.value.finding.where).endswith("in forward:   return opaque(x) + 1")


def test_the_templates_work_when_they_are_filled_in() -> None:
    said = refusal(opaque)
    for label, filled in (
        ("Fix (not tried)", "in_onnx(x, factor, shift)"),
        ("Or", "in_numpy(x, factor=factor, shift=shift)"),
    ):
        lines = said[said.index(f"  {label}:") :].splitlines()[1:4]
        template = "\n".join(line.removeprefix(" " * 10) for line in lines).replace("...", filled)
        with anyshape.translation("ops_test::opaque", len):  # takes the template away again
            exec(template, {"anyshape": anyshape, "in_onnx": in_onnx, "in_numpy": in_numpy})
            assert export(opaque).is_kept


def test_a_body_that_asks_for_values_is_refused_with_its_own_error() -> None:
    assert "cannot be followed: GuardOnDataDependentSymNode" in refusal(torch.ops.ops_test.asks)


def test_an_operator_that_changes_its_arguments_is_refused_where_its_body_cannot_be_followed() -> None:
    def model(x: Tensor) -> Tensor:
        y = x.clone()
        change_outside(y)
        return y

    said = refusal(model)
    without_body = [line for line in said.splitlines() if "its Python body cannot be followed" not in line]
    assert len(without_body) == len(said.splitlines()) - 1
    assert "\n".join(without_body) == CHANGES


def test_an_operator_that_changes_its_arguments_is_inlined() -> None:
    def model(x: Tensor) -> Tensor:
        y, z = x.clone(), x.clone()
        change(y[:, 1:])
        return overwrite(y, z, factor=0.5) + y * z

    assert export(model).is_kept


def test_a_translation_of_almost_that_name_is_mentioned() -> None:
    with anyshape.translation("ops_test::opaqe", in_onnx):
        assert "you gave a translation of 'ops_test::opaqe'; did you mean 'ops_test::opaque'?" in refusal(opaque)


def test_torchs_own_operators_are_not_inlined() -> None:
    assert "Python body" not in refusal(lambda x: torch.igamma(x.abs(), x.abs()))


def test_the_fake_that_is_proposed_takes_the_arguments_of_the_operator() -> None:
    said = refusal(lambda x: shapeless_sum(2.0, x, x))
    assert 'register_fake("ops_test::shapeless_sum", lambda factor, x, *others: torch.empty_like(x))' in said


def test_an_operator_that_does_not_say_its_shapes_is_named() -> None:
    assert refusal(shapeless).startswith("AS115 operator-without-shapes: operator ops_test::shapeless")
