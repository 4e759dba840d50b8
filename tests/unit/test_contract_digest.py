"""The digest of a model: the same however the model is stored, another after any change to what it computes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper, numpy_helper

from anyshape.contract.digest import digest_graph, digest_model

TEXT = """<ir_version: 10, opset_import: ["" : 18, "mine" : 1]>
g (float[batch, 4] x, bool flag) => (float[batch, 300] y)
<float[4, 300] w, int64[2] shape = {-1, 4}, float[300] bias, float[1] small = {0.5}>
{
    flat = Reshape (x, shape)
    scaled = mine.scale <by = 2.5> (flat)
    z = Gemm <alpha = 0.1> (scaled, w, bias)
    y = If (flag) <
        then_branch = t () => (float[batch, 300] a) { a = Mul (z, small) },
        else_branch = e () => (float[batch, 300] b) { b = Identity (z) }>
}
<domain: "mine", opset_import: ["" : 18]>
scale <by> (v) => (u) { factor = Constant <value_float: float = @by> () u = Mul (v, factor) }
"""


def model() -> onnx.ModelProto:
    made = onnx.parser.parse_model(TEXT)
    for name, shape in (("w", (4, 300)), ("bias", (300,))):
        values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        kept = [tensor for tensor in made.graph.initializer if tensor.name != name]
        del made.graph.initializer[:]
        made.graph.initializer.extend([*kept, numpy_helper.from_array(values, name)])
    return made


def graph_of(proto: onnx.ModelProto) -> str:
    return digest_graph(ir.from_proto(proto))


def initializer(proto: onnx.ModelProto, name: str) -> onnx.TensorProto:
    return next(tensor for tensor in proto.graph.initializer if tensor.name == name)


def inline_and_external(proto: onnx.ModelProto, folder: Path) -> list[ir.Model]:
    onnx.save(proto, folder / "inline.onnx")
    for threshold in (0, 1024):
        copy = onnx.ModelProto()
        copy.CopyFrom(proto)
        place = f"weights{threshold}.bin"
        onnx.save(
            copy, folder / f"{threshold}.onnx", save_as_external_data=True, location=place, size_threshold=threshold
        )
    return [ir.load(folder / f"{name}.onnx") for name in ("inline", "0", "1024")]


def test_the_way_to_store_a_model_changes_no_digest(tmp_path: Path) -> None:
    expected = digest_model(ir.from_proto(model()))
    assert digest_model(ir.from_proto(ir.to_proto(ir.from_proto(model())))) == expected
    for loaded in inline_and_external(model(), tmp_path):
        assert digest_model(loaded) == expected
    assert json.dumps(expected.graph).startswith('"sha256:')


def as_numbers(proto: onnx.ModelProto) -> None:
    tensor = initializer(proto, "bias")
    values = numpy_helper.to_array(tensor)
    tensor.CopyFrom(helper.make_tensor("bias", tensor.data_type, values.shape, values.tolist()))


def other_words(proto: onnx.ModelProto) -> None:
    proto.producer_name, proto.doc_string, proto.graph.doc_string = "tool", "words", "words"
    proto.metadata_props.add(key="anyshape.contract", value="{}")
    proto.graph.node[0].doc_string = "words"
    proto.graph.node[0].metadata_props.add(key="anyshape.source", value="model.py:3")


def more_shapes(proto: onnx.ModelProto) -> None:
    proto.graph.value_info.append(helper.make_tensor_value_info("flat", onnx.TensorProto.FLOAT, ["batch", 4]))


def other_order(proto: onnx.ModelProto) -> None:
    tensors = list(proto.graph.initializer)[::-1]
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(tensors)


@pytest.mark.parametrize("edit", [as_numbers, other_words, more_shapes, other_order])
def test_what_changes_no_answer_changes_no_digest(edit: Callable[[onnx.ModelProto], None]) -> None:
    changed = model()
    edit(changed)
    assert digest_model(ir.from_proto(changed)) == digest_model(ir.from_proto(model()))


def set_alpha(proto: onnx.ModelProto) -> None:
    proto.graph.node[2].attribute[0].f = 0.2


def other_small(proto: onnx.ModelProto) -> None:
    initializer(proto, "small").CopyFrom(numpy_helper.from_array(np.array([0.25], np.float32), "small"))


def other_shape(proto: onnx.ModelProto) -> None:
    initializer(proto, "shape").CopyFrom(numpy_helper.from_array(np.array([3, 4]), "shape"))


def other_branch(proto: onnx.ModelProto) -> None:
    proto.graph.node[3].attribute[0].g.node[0].op_type = "Add"


def other_function(proto: onnx.ModelProto) -> None:
    proto.functions[0].node[1].op_type = "Add"


def other_weights(proto: onnx.ModelProto) -> None:
    initializer(proto, "w").dims[:] = [300, 4]


def other_dim(proto: onnx.ModelProto) -> None:
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 3


def other_opset(proto: onnx.ModelProto) -> None:
    proto.opset_import[0].version = 19


def without_last(proto: onnx.ModelProto) -> None:
    proto.graph.node.pop()


@pytest.mark.parametrize(
    "edit",
    [
        set_alpha, other_small, other_shape, other_branch, other_function, other_weights, other_dim, other_opset,
        without_last,
    ],
)  # fmt: skip
def test_every_change_to_the_graph_changes_its_digest(edit: Callable[[onnx.ModelProto], None]) -> None:
    changed = model()
    edit(changed)
    assert graph_of(changed) != graph_of(model())


def test_values_of_weights_have_a_digest_of_their_own() -> None:
    changed = model()
    values = numpy_helper.to_array(initializer(changed, "w")) + 1
    initializer(changed, "w").CopyFrom(numpy_helper.from_array(values, "w"))
    before, after = digest_model(ir.from_proto(model())), digest_model(ir.from_proto(changed))
    assert before.graph == after.graph and before.weights != after.weights
