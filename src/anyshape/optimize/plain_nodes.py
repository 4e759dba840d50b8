"""Remove nodes that move or reshape data without need; make numbers of axes and sizes constants where shapes are known;
split fused nodes of onnxruntime that are slower than their parts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import numpy as np
import onnx_ir as ir

from anyshape.runtime.child_messages import Array

_CASTS = ("Cast", "CastLike")
_END = 2**63 - 1
_FUSED = ("com.microsoft", "SkipLayerNormalization")
_SINCE = 17  # the opset from which on LayerNormalization is an operator of ONNX
_MEAN, _SUM = 1, 3  # outputs of the fused node: mean and inverse deviation, which only training has, and the sum


def add_integers(model: ir.Model, prefix: str, numbers: Iterable[int]) -> ir.Value:
    """An int64 vector as a weight of the model; equal vectors with one prefix are one weight."""
    array = np.asarray(list(numbers), dtype=np.int64)
    name = f"{prefix}_{'_'.join(str(number) for number in array)}"
    known = model.graph.initializers.get(name)
    return known if known is not None else add_weight(model, name, array)


def add_weight(model: ir.Model, name: str, array: Array) -> ir.Value:
    """An array as a weight of the model, under a name that no other weight has."""
    tensor = ir.Tensor(array, name=name)
    value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape), const_value=tensor)
    model.graph.register_initializer(value)
    return value


def find_integers(value: ir.Value | None) -> list[int] | None:
    """The numbers of a constant vector or scalar of integers; None for anything else."""
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    if tensor is None or tensor.dtype not in (ir.DataType.INT64, ir.DataType.INT32) or tensor.size > 64:
        return None
    return [int(number) for number in tensor.numpy().reshape(-1)]


def count_axes_from_the_front(model: ir.Model) -> int:
    """Makes the axes of reductions positive. Says how many nodes were changed."""
    changed = 0
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        if not node.op_type.startswith("Reduce") or len(node.inputs) < 2:
            continue
        data, axes = node.inputs[0], node.inputs[1]
        rank = _rank(data)
        if rank is None or axes is None or axes.const_value is None:
            continue
        counted = axes.const_value.numpy()
        if (counted >= 0).all():
            continue
        positive = np.where(counted < 0, counted + rank, counted)
        node.replace_input_with(1, add_integers(model, "axes", positive.reshape(-1)))
        changed += 1
    return changed


def _rank(value: ir.Value | None) -> int | None:
    """How many axes a value has; one that was only cast has those of what it was cast from."""
    while value is not None and value.shape is None:
        maker = value.producer()
        value = maker.inputs[0] if maker is not None and maker.op_type in _CASTS else None
    return None if value is None or value.shape is None else len(value.shape)


def fixed_sizes(node: ir.Node, never_empty: Collection[str]) -> list[int] | None:
    """The constants, where there are such and they are not there yet."""
    value, given = node.inputs[0], node.outputs[0]
    if value is None or value.shape is None or given.shape is None or find_integers(node.inputs[1]) is not None:
        return None
    before = [_text(size) for size in value.shape]
    sizes: list[int] = []
    for place, size in enumerate(_text(size) for size in given.shape):
        if size is None:
            sizes.append(-1)
        elif place < len(before) and before[place] == size:
            sizes.append(0)
        elif isinstance(size, int) and size > 0:
            sizes.append(size)
        else:
            sizes.append(-1)
    copied = [before[place] for place, size in enumerate(sizes) if size == 0]
    if sizes.count(-1) > 1 or (-1 in sizes and not all(_is_never_empty(size, never_empty) for size in copied)):
        return None
    return [_size if _size else _plain(before[place]) for place, _size in enumerate(sizes)]


def _text(size: int | ir.SymbolicDim) -> int | str | None:
    return size if isinstance(size, int) else size.value


def _plain(size: int | str | None) -> int:
    """A static size is written as itself, any other as a copy."""
    return size if isinstance(size, int) else 0


def _is_never_empty(size: int | str | None, never_empty: Collection[str]) -> bool:
    return size > 0 if isinstance(size, int) else size in never_empty


def simplify_nodes(model: ir.Model, never_empty: Collection[str] = ()) -> int:
    """Apply the rules to every graph of the model, in place. `never_empty` are the dims that are at least 1."""
    changed = 0
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.domain or not node.inputs or node.inputs[0] is None or len(node.outputs) != 1:
            continue
        if node.op_type == "Reshape":
            changed += _fix_sizes(model, node, never_empty)
        if (merge := _MERGED.get(node.op_type)) is not None:
            changed += merge(model, node)
        rule = _REPLACED.get(node.op_type)
        kept = rule(node) if rule is not None else None
        if kept is not None and not node.outputs[0].is_graph_output():
            ir.convenience.replace_all_uses_with(node.outputs[0], kept)
            changed += 1
    return changed


def _fix_sizes(model: ir.Model, node: ir.Node, never_empty: Collection[str]) -> bool:
    sizes = fixed_sizes(node, never_empty)
    if sizes is None:
        return False
    node.replace_input_with(1, add_integers(model, "sizes", sizes))
    node.attributes["allowzero"] = ir.AttrInt64("allowzero", 0)
    return True


def _permutation(node: ir.Node | None) -> list[int] | None:
    if node is None or node.domain or node.op_type != "Transpose" or "perm" not in node.attributes:
        return None
    return list(node.attributes["perm"].as_ints())


def _merge_transposes(model: ir.Model, node: ir.Node) -> bool:
    inner = node.inputs[0].producer() if node.inputs[0] is not None else None
    first, second = _permutation(inner), _permutation(node)
    if inner is None or first is None or second is None:
        return False
    node.attributes["perm"] = ir.AttrInt64s("perm", [first[axis] for axis in second])
    node.replace_input_with(0, inner.inputs[0])
    return True


def _merge_unsqueezes(model: ir.Model, node: ir.Node) -> bool:
    inner = node.inputs[0].producer() if node.inputs[0] is not None else None
    if inner is None or inner.domain or inner.op_type != "Unsqueeze":
        return False
    first, second = find_integers(inner.inputs[1]), find_integers(node.inputs[1])
    if first is None or second is None or min(*first, *second) < 0:
        return False
    axes = set(second)
    places = iter([axis for axis in range(max(*first, *second) + len(first) + len(second) + 1) if axis not in axes])
    where = list(places)
    merged = sorted(axes | {where[axis] for axis in first})
    node.replace_input_with(0, inner.inputs[0])
    node.replace_input_with(1, add_integers(model, "axes", merged))
    return True


_MERGED: dict[str, Callable[[ir.Model, ir.Node], bool]] = {
    "Transpose": _merge_transposes,
    "Unsqueeze": _merge_unsqueezes,
}


def _in_order(node: ir.Node) -> ir.Value | None:
    axes = _permutation(node)
    return node.inputs[0] if axes is not None and axes == sorted(axes) else None


def _whole_slice(node: ir.Node) -> ir.Value | None:
    if len(node.inputs) < 4:
        return None
    starts, ends = find_integers(node.inputs[1]), find_integers(node.inputs[2])
    steps = find_integers(node.inputs[4]) if len(node.inputs) > 4 else [1]
    if starts is None or ends is None or steps is None:
        return None
    is_whole = not any(starts) and all(end == _END for end in ends) and all(step == 1 for step in steps)
    return node.inputs[0] if is_whole else None


def _same_type(node: ir.Node) -> ir.Value | None:
    value = node.inputs[0]
    return value if value is not None and value.dtype == ir.DataType(node.attributes["to"].as_int()) else None


def _shape_again(node: ir.Node) -> ir.Value | None:
    """The size of one axis as a vector, made a scalar and a vector again."""
    squeeze = node.inputs[0].producer() if node.inputs[0] is not None else None
    if squeeze is None or squeeze.op_type != "Squeeze" or find_integers(node.inputs[1]) not in ([-1], [1]):
        return None
    shape = squeeze.inputs[0].producer() if squeeze.inputs[0] is not None else None
    if shape is None or shape.op_type != "Shape" or "start" not in shape.attributes or "end" not in shape.attributes:
        return None
    start, end = (shape.attributes[name].as_int() for name in ("start", "end"))
    return squeeze.inputs[0] if end - start == 1 and start * end >= 0 else None


_REPLACED: dict[str, Callable[[ir.Node], ir.Value | None]] = {
    "Transpose": _in_order,
    "Slice": _whole_slice,
    "Cast": _same_type,
    "Reshape": _shape_again,
}


def split_skip_norms(model: ir.Model) -> int:
    """Split float32 nodes that onnxruntime fuses although its fused CPU kernel is slower. Returns how many there were.

    SkipLayerNormalization(x, skip, scale, shift, bias)   ->  LayerNormalization(Sum(x, skip, bias), scale, shift)

    The fused kernel takes three times as long (onnxruntime 1.31). It is `Sum` and not `Add`, since onnxruntime would fuse an
    `Add` again when it loads the file.
    """
    if model.opset_imports.get("", 0) < _SINCE:
        return 0
    nodes = [node for node in ir.traversal.RecursiveGraphIterator(model.graph) if _is_skip_norm(node)]
    for node in nodes:
        _split_norm(node)
    return len(nodes)


def _is_skip_norm(node: ir.Node) -> bool:
    if (node.domain, node.op_type) != _FUSED or len(node.inputs) < 4 or node.inputs[3] is None:
        return False
    has_statistics = any(value.uses() for value in node.outputs[_MEAN:_SUM])
    scale = node.inputs[2]
    return scale is not None and scale.dtype == ir.DataType.FLOAT and not has_statistics


def _split_norm(node: ir.Node) -> None:
    x, skip, scale, shift, *bias = node.inputs
    added = ir.node("Sum", [x, skip, *(each for each in bias if each is not None)], name=f"{node.name}_sum")
    epsilon = node.attributes["epsilon"].as_float() if "epsilon" in node.attributes else 1e-12
    norm = ir.node(
        "LayerNormalization", [added.outputs[0], scale, shift], {"axis": -1, "epsilon": epsilon}, name=node.name
    )
    norm.metadata_props.update(node.metadata_props)
    added.outputs[0].name = f"{node.outputs[0].name}_sum"  # no name of an outer graph
    assert node.graph is not None
    sums = node.outputs[_SUM : _SUM + 1]
    old, new = [node.outputs[0], *sums], [norm.outputs[0], *(added.outputs[0] for _ in sums)]
    for before, after in zip(old, new, strict=True):
        after.name, after.type, after.shape = before.name, before.type, before.shape
    ir.convenience.replace_nodes_and_values(node.graph, node, [node], [added, norm], old, new)
