"""The opsets that anyshape writes, and the way from the one in which translations are written (18) to the user's.

A file of another opset is converted at the end and verified like every other: to newer opsets by onnxscript, to 11 to 17 by us,
one opset at a time: what came with opset 17 is replaced by what opset 16 has, and so on. What has no replacement is refused by
its name, from the schemas of the installed onnx.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import onnx_ir as ir
from onnx_ir.passes.common import ShapeInferencePass

from anyshape.findings import Finding, PromiseBroken, Severity, UsageError, check_number
from anyshape.processes.quiet import quiet_libraries
from anyshape.records.export import Exported
from anyshape.translate.lacking_forms import OPSET as OPSET_17
from anyshape.translate.lacking_forms import Inexpressible, lower_to_17, subgraphs
from anyshape.translate.opset_forms import (
    at_least,
    at_most,
    batch_norm,
    by_products,
    by_where,
    cast_like,
    clip_integers,
    constant_value,
    fixed_axes,
    hard_swish,
    layer_norm,
    part_of_shape,
    power,
    reshape,
    resize,
    softmax,
    split,
    triangle,
    without_defaults,
)

if TYPE_CHECKING:
    from onnx.defs import OpSchema


OLDEST_OPSET = 11
NEWEST_OPSET = 23
DEFAULT_OPSET = 18
OLDEST_ENFORCING_OPSET = 13
# The opset with which a form came -> operator -> function that writes it in the forms of the opset before.
FORMS: Mapping[int, Mapping[str, Form]] = {
    17: {"LayerNormalization": layer_norm},
    16: {
        "ScatterElements": without_defaults(reduction="none"),
        "ScatterND": without_defaults(reduction="none"),
        "RoiAlign": without_defaults(coordinate_transformation_mode="output_half_pixel"),
    },
    15: {"Shape": part_of_shape, "CastLike": cast_like},
    14: {
        "BatchNormalization": batch_norm,
        "LSTM": without_defaults(layout=0),
        "GRU": without_defaults(layout=0),
        "RNN": without_defaults(layout=0),
        "Reshape": reshape,
        "HardSwish": hard_swish,
        "Trilu": triangle,
    },
    13: {
        "ReduceSum": fixed_axes,
        "Squeeze": fixed_axes,
        "Unsqueeze": fixed_axes,
        "Split": split,
        "Softmax": softmax,
        "LogSoftmax": softmax,
        "Resize": resize,
    },
    12: {
        "Constant": constant_value,
        "GreaterOrEqual": at_least,
        "LessOrEqual": at_most,
        "Max": by_where,
        "Min": by_where,
        "Clip": clip_integers,
        "ArgMax": without_defaults(select_last_index=0),
        "ArgMin": without_defaults(select_last_index=0),
        "GatherND": without_defaults(batch_dims=0),
        "Pow": power,
        "Einsum": by_products,
    },
}
WRITTEN_OPSET = 18


def check_opset(opset: int, enforce_values: bool = False) -> None:
    """Raise UsageError unless anyshape writes the opset, and a file of it can check values where that is asked for."""
    check_number("opset", opset, DEFAULT_OPSET, whole=True)
    if not OLDEST_OPSET <= opset <= NEWEST_OPSET:
        raise UsageError(
            Finding(
                code="AS035",
                name="opset",
                what=f"opset {opset} is not one that anyshape writes.",
                why=f"it writes opsets {OLDEST_OPSET} to {NEWEST_OPSET}; {DEFAULT_OPSET} unless told otherwise.",
                fix=f"opset={min(max(opset, OLDEST_OPSET), NEWEST_OPSET)}",
            )
        )
    if enforce_values and opset < OLDEST_ENFORCING_OPSET:
        raise UsageError(
            Finding(
                code="AS428",
                name="opset-without-checks",
                what=f"enforce_values=True needs opset {OLDEST_ENFORCING_OPSET} or newer, and the opset is {opset}.",
                why="the nodes that check values cannot be written in older opsets.",
                fix=f"opset={OLDEST_ENFORCING_OPSET}",
                alternative="leave enforce_values out: anyshape.load checks the values of each call.",
            )
        )


def sizes_not_enforced(opset: int) -> Finding:
    """AS427, a warning: the nodes by which a graph refuses sizes outside its contract cannot be written in this opset."""
    return Finding(
        code="AS427",
        name="sizes-not-enforced",
        severity=Severity.WARNING,
        what=f"a file of opset {opset} does not itself refuse sizes outside its contract.",
        why=f"the nodes that check sizes need opset {OLDEST_ENFORCING_OPSET} or newer.",
        fix=f"opset={OLDEST_ENFORCING_OPSET}",
        alternative='enforce="load" leaves the checks to anyshape.load, without this warning.',
    )


Form = Callable[[ir.Node, ir.tape.Tape], Sequence[ir.Value] | None]


def lower_further(model: ir.Model, opset: int) -> None:
    """Changes a model of opset 17 in place. Raises Inexpressible, and leaves it half changed, where `opset` cannot have it."""
    _infer_types(model)
    for version in sorted(FORMS, reverse=True):
        if opset < version:
            _write_forms(model, FORMS[version])
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        if node.domain == "":
            _check_defined(node, opset)
    for graph in (model.graph, *subgraphs(model)):
        graph.opset_imports[""] = opset


def _infer_types(model: ir.Model) -> None:
    """Adds the ranks and types that older forms need, except those of sequences, which the pass of onnx_ir calls tensors."""
    nodes = [node for node in ir.traversal.RecursiveGraphIterator(model.graph) if "Sequence" in node.op_type]
    before = [(value, value.type, value.shape) for node in nodes for value in node.outputs]
    ShapeInferencePass()(model)
    for value, kind, shape in before:
        value.type, value.shape = kind, shape


def _write_forms(model: ir.Model, forms: Mapping[str, Form]) -> None:
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        form = forms.get(node.op_type) if node.domain == "" else None
        if form is None:
            continue
        tape = ir.tape.Tape()
        values = form(node, tape)
        if values is not None:
            _replace(node, tape.nodes, values)
        elif tape.nodes and node.graph is not None:
            _name(node, tape.nodes)
            node.graph.insert_before(node, tape.nodes)


def _replace(node: ir.Node, nodes: Sequence[ir.Node], values: Sequence[ir.Value]) -> None:
    graph = node.graph
    if graph is None:
        raise Inexpressible(f"{node.op_type} is in no graph.")
    _name(node, nodes)
    ir.convenience.replace_nodes_and_values(graph, node, [node], nodes, node.outputs[: len(values)], values)


def _name(node: ir.Node, nodes: Sequence[ir.Node]) -> None:
    """Names that no other graph of the model has, and the source line of the node that they replace or prepare."""
    for number, new in enumerate(nodes):
        new.name = f"{node.name}/{new.op_type}_{number}"
        new.metadata_props.update(node.metadata_props)
        for position, value in enumerate(new.outputs):
            value.name = f"{node.outputs[0].name}/{new.op_type}_{number}_{position}"


def _check_defined(node: ir.Node, opset: int) -> None:
    """Raises Inexpressible unless the opset defines the operator with these attributes, inputs and types."""
    from onnx import defs

    if not defs.has(node.op_type, opset, ""):
        raise Inexpressible(f"{node.op_type} came with opset {_came_with(node.op_type, opset)}.")
    schema = defs.get_schema(node.op_type, opset, "")
    newer = sorted(name for name in node.attributes if name not in schema.attributes)
    if newer:
        raise Inexpressible(f"{node.op_type} has no {newer[0]} at opset {opset}.")
    if len(node.inputs) > schema.max_input:
        raise Inexpressible(f"{node.op_type} has at most {schema.max_input} inputs at opset {opset}.")
    for position, value in enumerate(node.inputs):
        if value is not None and value.dtype is not None and not _takes(schema, position, value.dtype):
            raise Inexpressible(f"{node.op_type} takes no {value.dtype} at opset {opset}.")


def _takes(schema: OpSchema, position: int, dtype: ir.DataType) -> bool:
    """Whether a schema allows tensors of a dtype at this input; sequences and formal types without a list are allowed."""
    from onnx import TensorProto

    formal = schema.inputs[min(position, len(schema.inputs) - 1)].type_str
    allowed = [
        names for each in schema.type_constraints if each.type_param_str == formal for names in each.allowed_type_strs
    ]
    tensors = [name for name in allowed if name.startswith("tensor(")]
    return not tensors or f"tensor({TensorProto.DataType.Name(dtype.value).lower()})" in tensors


def _came_with(op_type: str, opset: int) -> int:
    from onnx import defs

    known = [each.since_version for each in defs.get_all_schemas_with_history() if each.name == op_type]
    return min((version for version in known if version > opset), default=opset + 1)


def convert_opset(exported: Exported, opset: int) -> Exported:
    """The same model at another opset. Raises PromiseBroken where that cannot be."""
    if opset == WRITTEN_OPSET:
        return exported
    if opset < WRITTEN_OPSET:
        try:
            lower_to_17(exported.model)
            if opset < OPSET_17:
                lower_further(exported.model, opset)
        except Inexpressible as error:
            raise PromiseBroken(_refused(opset, str(error))) from error
        return replace(exported, opset=opset)
    from onnxscript import version_converter

    with quiet_libraries():
        try:
            version_converter.convert_version(exported.model, opset)
        except Exception as error:
            raise PromiseBroken(_refused(opset, f"{type(error).__name__}: {error}")) from error
    reached = exported.model.opset_imports.get("", WRITTEN_OPSET)
    if reached != opset:
        raise PromiseBroken(_refused(opset, f"the converter stops at opset {reached}."))
    exported.model.ir_version = max(exported.model.ir_version, _oldest_ir_version(opset))
    return replace(exported, opset=opset)


def _oldest_ir_version(opset: int) -> int:
    from onnx import helper

    return int(helper.find_min_ir_version_for([helper.make_opsetid("", opset)]))


def _refused(opset: int, why: str) -> Finding:
    return Finding(
        code="AS203",
        name="opset-refused",
        what=f"the model cannot be written at opset {opset}.",
        why=why.splitlines()[0][:200],
        fix=f"leave the opset out: {WRITTEN_OPSET} is the one in which anyshape writes.",
    )
