"""What the graph of any file says of its sizes."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest

from anyshape.contract.graph_rules import contract_of_foreign
from anyshape.findings import UsageError


def foreign(inputs: str, outputs: str = "float[n] y", ir_version: int = 8) -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f'<ir_version: {ir_version}, opset_import: ["": 17]> g ({inputs}) => ({outputs}) {{ y = Identity(x) }}'
    )


def renamed(model: onnx.ModelProto, *names: str | int | None) -> onnx.ModelProto:
    """The axes of the first input with other names, which the text form of ONNX could not hold."""
    axes = model.graph.input[0].type.tensor_type.shape.dim
    for axis, name in zip(axes, names, strict=True):
        axis.Clear()
        if isinstance(name, int):
            axis.dim_value = name
        elif name is not None:
            axis.dim_param = name
    return model


@pytest.mark.parametrize(
    ("names", "axes", "dims"),
    [
        (("batch", 3), "x: float32[batch, 3]", ("batch",)),
        (("batch", "batch"), "x: float32[batch, batch]", ("batch",)),
        (("s77", "unk__3"), "x: float32[s77, unk__3]", ("s77", "unk__3")),
        (("past + seq", "2*seq"), "x: float32[past + seq, 2*seq]", ("past", "seq")),
        (("batch.1", "batch.1"), "x: float32[batch_1, batch_1]", ("batch_1",)),
        (("batch.1", "batch_1"), "x: float32[batch_1_2, batch_1]", ("batch_1_2", "batch_1")),
        (("Reshapex_dim_0", "seq len"), "x: float32[Reshapex_dim_0, seq_len]", ("Reshapex_dim_0", "seq_len")),
        (("3d", "class"), "x: float32[_3d, _class]", ("_3d", "_class")),
        (("?", "%"), "x: float32[dim, dim_2]", ("dim", "dim_2")),
        ((None, -1), "x: float32[x_0, x_1]", ("x_0", "x_1")),
        (("x_0", None), "x: float32[x_0, x_1]", ("x_0", "x_1")),
        (("x_1", None), "x: float32[x_1, x_1_2]", ("x_1", "x_1_2")),
        ((0, 5), "x: float32[0, 5]", ()),
        (("12", "seq"), "x: float32[_12, seq]", ("_12", "seq")),
    ],
)
def test_names_become_dims(names: tuple[str | int | None, ...], axes: str, dims: tuple[str, ...]) -> None:
    found = contract_of_foreign(renamed(foreign("float[a, b] x"), *names))
    assert str(found.inputs[0]) == axes
    assert found.domain.names == dims


def test_nothing_is_promised() -> None:
    found = contract_of_foreign(foreign("float[n] x"))
    assert (found.status, found.rules, found.opset) == ("unknown", (), 17)
    assert [(dim.min, dim.max, dim.declared) for dim in found.domain.dims] == [(1, None, False)]


def test_an_axis_of_an_output_that_no_input_explains_is_open() -> None:
    found = contract_of_foreign(foreign("float[n, m] x", "float[n, k] y"))
    assert str(found.outputs[0]) == "y: float32[n, ?]"


def test_a_weight_that_old_files_list_among_the_inputs_is_none() -> None:
    model = foreign("float[n] x, float[3] w", ir_version=3)
    model.graph.initializer.append(onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [3], [0.0] * 3))
    assert [tensor.name for tensor in contract_of_foreign(model).inputs] == ["x"]


def test_a_model_in_memory_is_taken_too() -> None:
    model = foreign("bfloat16[n] x", "bfloat16[n] y")
    assert contract_of_foreign(ir.from_proto(model)) == contract_of_foreign(model)
    assert str(contract_of_foreign(model).inputs[0]) == "x: bfloat16[n]"


def test_a_sequence_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        contract_of_foreign(foreign("seq(float[n]) x", "seq(float[n]) y"))
    assert caught.value.finding.code == "AS048"


def test_an_input_of_unknown_rank_is_refused() -> None:
    model = foreign("float[n] x")
    model.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(UsageError) as caught:
        contract_of_foreign(model)
    assert caught.value.finding.code == "AS048"
