"""Ways to break a good ONNX file, each as small as a real mistake: an attribute, a constant, an operator, an edge.

Each is a generator of (what was done, the broken file); it knows operators, never models.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator

import numpy as np
import onnx
from onnx import helper, numpy_helper

Mutants = Iterator[tuple[str, onnx.ModelProto]]

OTHER_OPERATOR = {
    "Add": "Sub",
    "Sub": "Add",
    "Mul": "Div",
    "Div": "Mul",
    "MatMul": None,
    "Softmax": "LogSoftmax",
    "Tanh": "Sigmoid",
    "ReduceSum": "ReduceMean",
    "ReduceMean": "ReduceSum",
    "ReduceMax": "ReduceMin",
    "ArgMax": "ArgMin",
    "Greater": "Less",
    "LeakyRelu": "Identity",
    "Clip": None,
}
EXAMPLE = {"b": 2, "s": 5}
SWAPPABLE = ("Sub", "Div", "MatMul", "Concat", "Mod", "Greater")


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The graph and those inside its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from graphs(attribute.g)


def nodes(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    return [node for graph in graphs(model.graph) for node in graph.node]


def each_node(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto, onnx.NodeProto]]:
    """For each node its name, a fresh copy of the model, and the node in that copy."""
    for position, node in enumerate(nodes(model)):
        fresh = copy.deepcopy(model)
        yield f"{node.op_type} {node.output[0]}", fresh, nodes(fresh)[position]


def index_of(model: onnx.ModelProto, node: onnx.NodeProto) -> int | None:
    """Where a node stands in the outer graph; None for one inside a branch or a loop."""
    return next((place for place, each in enumerate(model.graph.node) if each is node), None)


def other_operator(model: onnx.ModelProto) -> Mutants:
    for name, fresh, node in each_node(model):
        if other := OTHER_OPERATOR.get(node.op_type):
            if other in ("Identity", "LogSoftmax"):
                kept = [a for a in node.attribute if other == "LogSoftmax"]
                del node.attribute[:]
                node.attribute.extend(kept)
            node.op_type = other
            yield f"{name} -> {other}", fresh


def swapped_inputs(model: onnx.ModelProto) -> Mutants:
    for name, fresh, node in each_node(model):
        if node.op_type in SWAPPABLE and node.input[0] != node.input[1]:
            node.input[0], node.input[1] = node.input[1], node.input[0]
            yield f"{name}: inputs swapped", fresh


def other_axis(model: onnx.ModelProto) -> Mutants:
    for name, fresh, node in each_node(model):
        for attribute in node.attribute:
            if attribute.name == "axis":
                attribute.i = attribute.i - 1 if attribute.i else 1
                yield f"{name}: axis {attribute.i}", fresh
            if attribute.name == "perm":
                attribute.ints[0], attribute.ints[-1] = attribute.ints[-1], attribute.ints[0]
                yield f"{name}: perm {list(attribute.ints)}", fresh


def flipped_switch(model: onnx.ModelProto) -> Mutants:
    switches = ("keepdims", "transB", "exclusive", "reverse", "largest", "upper", "select_last_index")
    for position, node in enumerate(nodes(model)):
        for attribute in node.attribute:
            if attribute.name in switches:
                fresh = copy.deepcopy(model)
                found = next(a for a in nodes(fresh)[position].attribute if a.name == attribute.name)
                found.i = 1 - found.i
                yield f"{node.op_type} {node.output[0]}: {found.name} = {found.i}", fresh


def other_number(model: onnx.ModelProto) -> Mutants:
    for name, fresh, node in each_node(model):
        for attribute in node.attribute:
            if attribute.name in ("alpha", "epsilon"):
                attribute.f = attribute.f * 3 + 0.01
                yield f"{name}: {attribute.name} = {attribute.f:g}", fresh
            if attribute.name == "pads":
                attribute.ints[0], attribute.ints[1] = 2, 0
                yield f"{name}: pads shifted", fresh


def off_by_one(model: onnx.ModelProto) -> Mutants:
    for name, fresh, node in each_node(model):
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value_ints":
                attribute.ints[-1] += 1
                yield f"{name}: {list(attribute.ints)}", fresh
            if node.op_type == "Constant" and attribute.name == "value_int":
                attribute.i += 1
                yield f"{name}: {attribute.i}", fresh
            if node.op_type == "Constant" and attribute.name == "value_float":
                attribute.f *= 1.01
                yield f"{name}: {attribute.f:g}", fresh


def frozen_size(model: onnx.ModelProto) -> Mutants:
    """A size that was read from an input becomes the number that it was in an example."""
    shapes = example_shapes(model)
    for name, fresh, node in each_node(model):
        if node.op_type == "Shape" and node.input[0] in shapes:
            dims = shapes[node.input[0]]
            ends = {a.name: a.i for a in node.attribute}
            shape = np.array(dims[ends.get("start", 0) : ends.get("end", len(dims))], np.int64)
            tensor = numpy_helper.from_array(shape)
            node.CopyFrom(helper.make_node("Constant", [], [node.output[0]], name=node.name, value=tensor))
            yield f"{name}: frozen at {shape.tolist()}", fresh
        if node.op_type == "Reshape":
            source = next((n for n in nodes(fresh) if node.input[1] in n.output), None)
            if source is not None and source.op_type == "Constant" and min(source.attribute[0].ints, default=1) <= 0:
                numbers = source.attribute[0].ints
                place = next(i for i, n in enumerate(numbers) if n <= 0 and i > 0) if len(numbers) > 1 else 0
                numbers[place] = 10 if len(numbers) == 1 else 3 if "p" in node.input[0] else 5
                yield f"{name}: reshaped to {list(numbers)}", fresh


def example_shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    """The shapes that the file declares, at the sizes of the example."""
    shapes = {}
    for value in (*model.graph.input, *model.graph.value_info):
        dims = value.type.tensor_type.shape.dim
        with contextlib.suppress(NameError, SyntaxError):  # a size that depends on values has a name of its own
            shapes[value.name] = [eval(dim.dim_param, {}, EXAMPLE) if dim.dim_param else dim.dim_value for dim in dims]
    return shapes


def broken_weight(model: onnx.ModelProto) -> Mutants:
    for position, tensor in enumerate(model.graph.initializer):
        array = numpy_helper.to_array(tensor)
        for what, broken in broken_versions(array):
            if not np.array_equal(broken, array, equal_nan=array.dtype.kind == "f"):
                fresh = copy.deepcopy(model)
                fresh.graph.initializer[position].CopyFrom(numpy_helper.from_array(broken, tensor.name))
                yield f"{tensor.name}: {what}", fresh


def broken_versions(array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    if array.size == 0 or array.dtype.kind not in "fi":
        return
    if array.dtype.kind == "i":
        moved = array.copy()
        moved.reshape(-1)[-1] += -1 if moved.reshape(-1)[-1] == np.iinfo(array.dtype).max else 1
        yield "one element moved", moved
        if array.size > 1:
            yield "rolled", np.roll(array, 1)
        return
    moved, holed = array.copy(), array.copy()
    moved.reshape(-1)[-1] += 0.05
    holed.reshape(-1)[0] = np.nan
    yield "one element moved", moved
    yield "one element nan", holed
    yield "zeroed", np.zeros_like(array)
    if array.ndim == 2 and array.shape[0] == array.shape[1]:
        yield "transposed", array.T.copy()
    if array.ndim and array.shape[0] > 1:
        yield "rows rolled", np.roll(array, 1, 0)
    if np.abs(array).max(initial=0) < np.finfo(np.float16).max:
        yield "in half precision", array.astype(np.float16).astype(array.dtype)


def bypassed(model: onnx.ModelProto) -> Mutants:
    """A node that does nothing."""
    for name, fresh, node in each_node(model):
        if node.op_type in (
            "Transpose",
            "Softmax",
            "Tanh",
            "LeakyRelu",
            "Clip",
            "Div",
            "Trilu",
            "CumSum",
            "Pad",
            "Mul",
        ):
            node.CopyFrom(helper.make_node("Identity", [node.input[0]], [node.output[0]], name=node.name))
            yield f"{name}: bypassed", fresh


def wrong_branch(model: onnx.ModelProto) -> Mutants:
    for name, fresh, node in each_node(model):
        if node.op_type == "If":
            then, other = node.attribute[0], node.attribute[1]
            then.name, other.name = other.name, then.name
            yield f"{name}: branches swapped", fresh
        if node.op_type == "Where":
            node.input[1], node.input[2] = node.input[2], node.input[1]
            yield f"{name}: branches swapped", fresh


def _rewired(model: onnx.ModelProto, build: Callable[[str, str], list[onnx.NodeProto]]) -> onnx.ModelProto:
    """A copy whose first output is what `build(inner, outer)` makes of the inner value."""
    fresh = copy.deepcopy(model)
    outer = fresh.graph.output[0].name
    for node in fresh.graph.node:
        node.output[:] = ["inner" if name == outer else name for name in node.output]
        node.input[:] = ["inner" if name == outer else name for name in node.input]
    fresh.graph.node.extend(build("inner", outer))
    return fresh


def _element_type(model: onnx.ModelProto) -> int:
    return model.graph.output[0].type.tensor_type.elem_type


def wrong_output(model: onnx.ModelProto) -> Mutants:
    kind = _element_type(model)
    other = onnx.TensorProto.DOUBLE if kind == onnx.TensorProto.FLOAT else onnx.TensorProto.INT32
    widened = _rewired(model, lambda a, z: [helper.make_node("Cast", [a], [z], to=other)])
    widened.graph.output[0].type.tensor_type.elem_type = other
    yield "output in another dtype", widened
    for what, axis in (("axis added", 0), ("axis added at the end", -1)):
        axes = numpy_helper.from_array(np.array([axis]), "new_axis")
        fresh = _rewired(model, lambda a, z: [helper.make_node("Unsqueeze", [a, "new_axis"], [z])])
        fresh.graph.initializer.append(axes)
        fresh.graph.output[0].type.tensor_type.ClearField("shape")
        yield what, fresh
    if kind == onnx.TensorProto.FLOAT:
        yield (
            "output through half precision",
            _rewired(
                model,
                lambda a, z: [
                    helper.make_node("Cast", [a], ["narrow"], to=onnx.TensorProto.FLOAT16),
                    helper.make_node("Cast", ["narrow"], [z], to=onnx.TensorProto.FLOAT),
                ],
            ),
        )
        yield (
            "zeros become nan",
            _rewired(
                model,
                lambda a, z: [helper.make_node("Div", [a, a], ["ones"]), helper.make_node("Mul", [a, "ones"], [z])],
            ),
        )


def truncated(model: onnx.ModelProto) -> Mutants:
    """Right up to a length, cut beyond it."""
    for position, value in enumerate(model.graph.input):
        dims = [dim.dim_param for dim in value.type.tensor_type.shape.dim]
        if "s" not in dims:
            continue
        fresh = copy.deepcopy(model)
        for node in nodes(fresh):
            node.input[:] = ["cut" if name == value.name else name for name in node.input]
        for name, number in (("cut_start", 0), ("cut_end", 8), ("cut_axis", dims.index("s"))):
            fresh.graph.initializer.append(numpy_helper.from_array(np.array([number]), name))
        cut = helper.make_node("Slice", [value.name, "cut_start", "cut_end", "cut_axis"], ["cut"])
        fresh.graph.node.insert(0, cut)
        yield f"input {position} cut at length 8", fresh


def clipped_index(model: onnx.ModelProto) -> Mutants:
    for name, fresh, node in each_node(model):
        if node.op_type == "Gather" and node.input[0].endswith("weight") and index_of(fresh, node) is not None:
            fresh.graph.initializer.append(numpy_helper.from_array(np.array(3), "most"))
            place = index_of(fresh, node)
            clip = helper.make_node("Min", [node.input[1], "most"], ["clipped"])
            node.input[1] = "clipped"
            fresh.graph.node.insert(place, clip)
            yield f"{name}: index clipped at 3", fresh


def true_division(model: onnx.ModelProto) -> Mutants:
    """Integers divided as floats, and rounded to the nearest."""
    for name, fresh, node in each_node(model):
        is_integer = _element_type(model) == onnx.TensorProto.INT64
        if node.op_type == "Div" and is_integer and index_of(fresh, node) is not None:
            place = index_of(fresh, node)
            a, b, z = node.input[0], node.input[1], node.output[0]
            fresh.graph.node.remove(node)
            for offset, new in enumerate(
                [
                    helper.make_node("Cast", [a], ["fa"], to=1),
                    helper.make_node("Cast", [b], ["fb"], to=1),
                    helper.make_node("Div", ["fa", "fb"], ["fd"]),
                    helper.make_node("Round", ["fd"], ["fr"]),
                    helper.make_node("Cast", ["fr"], [z], to=7),
                ]
            ):
                fresh.graph.node.insert(place + offset, new)
            yield f"{name}: divided as floats", fresh


def outputs_changed(model: onnx.ModelProto) -> Mutants:
    if len(model.graph.output) > 1:
        dropped = copy.deepcopy(model)
        del dropped.graph.output[-1]
        yield "last output dropped", dropped
        swapped = copy.deepcopy(model)
        turned = list(swapped.graph.output)[::-1]
        del swapped.graph.output[:]
        swapped.graph.output.extend(turned)
        yield "outputs in reverse", swapped
    twice = copy.deepcopy(model)
    twice.graph.output.append(helper.make_tensor_value_info("twice", _element_type(model), None))
    twice.graph.node.append(helper.make_node("Identity", [model.graph.output[0].name], ["twice"]))
    yield "an output too many", twice


MUTATIONS = (
    other_operator,
    swapped_inputs,
    other_axis,
    flipped_switch,
    other_number,
    off_by_one,
    frozen_size,
    broken_weight,
    bypassed,
    wrong_branch,
    wrong_output,
    truncated,
    clipped_index,
    true_division,
    outputs_changed,
)


def harmless(model: onnx.ModelProto) -> Mutants:
    """Changes that change no result: the control group."""
    stale = copy.deepcopy(model)
    for value in stale.graph.output:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = f"old_{dim.dim_param}"
    yield "stale names of dims", stale
    named = copy.deepcopy(model)
    for position, node in enumerate(nodes(named)):
        node.name = f"n{position}"
    yield "nodes renamed", named
    yield "an identity added", _rewired(model, lambda a, z: [helper.make_node("Identity", [a], [z])])
