"""Who is at fault, the file or onnxruntime: onnx's own reference says what a node should give for what it was given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anyshape.records.verdict import Fault
from anyshape.runtime.dtypes import Array, dtype_of_ort_type
from anyshape.verify.compare import OutputRule, compare_outputs
from anyshape.verify.locate.known import KnownValues
from anyshape.verify.locate.opened import FileNode


def judge(model: Any, node: FileNode, values: Mapping[str, Array], known: KnownValues) -> Fault:
    """FILE if the reference gives for this node what onnxruntime gave, or stops there as it did.

    UNDEFINED if ONNX has no such operator for the types that the node was given, whatever the reference gives for them.
    RUNTIME only if it gives what the module has: the reference itself may be wrong, or have no kernel.
    """
    reads = list(dict.fromkeys(name for name in node.proto.input if name))
    gives = [name for name in node.proto.output if name]
    if node.loop or any(name not in values for name in reads) or list(node.reads) != list(node.proto.input):
        return Fault.UNKNOWN
    actual = [values[name] for name in gives if name in values]
    if not actual and not _is_defined(model, node.proto, values):
        return Fault.UNDEFINED
    try:
        expected = _reference(model, node.proto, {name: values[name] for name in reads}, gives)
    except NotImplementedError:
        return Fault.UNKNOWN
    except Exception:
        return Fault.UNKNOWN if actual else Fault.FILE
    if actual and compare_outputs(expected, actual, [OutputRule(name) for name in gives]) is None:
        return Fault.FILE
    return Fault.RUNTIME if all(known.find(array) is not None for array in expected) else Fault.UNKNOWN


def _is_defined(model: Any, node: Any, values: Mapping[str, Array]) -> bool:
    """Whether the ONNX standard has the node's operator for the types of its inputs."""
    import onnx

    opset = next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), 0)
    if node.domain not in ("", "ai.onnx") or not onnx.defs.has(node.op_type, opset, ""):
        return True  # another domain has its own rules
    schema = onnx.defs.get_schema(node.op_type, opset, "")
    allowed = {
        each.type_param_str: set(map(dtype_of_ort_type, each.allowed_type_strs)) for each in schema.type_constraints
    }
    for place, name in enumerate(node.input):
        variable = schema.inputs[min(place, len(schema.inputs) - 1)].type_str
        if name and variable in allowed and values[name].dtype.name not in allowed[variable]:
            return False
    return True


def _reference(model: Any, node: Any, given: Mapping[str, Array], gives: list[str]) -> list[Array]:
    from onnx import TensorProto, ValueInfoProto, helper
    from onnx.reference import ReferenceEvaluator

    inputs = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in given]
    graph = helper.make_graph([node], "one", inputs, [ValueInfoProto(name=name) for name in gives])
    one = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    return list(ReferenceEvaluator(one).run(None, dict(given)))
