"""What passes can know of nodes without running them.

is_true_everywhere, find_lower_bound, find_count    values of an fx node: True everywhere, at least a number, 0, 1, 2, ...
same_shape, same_size                               whether sizes are the same by their expressions
returns_new_memory, is_composite                    whether a node's result shares memory with no other tensor
admit_empty_means                                   whether an ONNX node takes a mean over an axis that may be empty in the
                                                    domain: such a node is replaced, so that it gives NaN, as in torch
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir
import torch
from onnx_ir.tape import Tape
from torch._ops import OpOverload
from torch.fx import Node

from anyshape.domain import Compare, Domain, Expr, Number, decide, is_about, parse_expr
from anyshape.translate.names import in_dims
from anyshape.translate.operators.size_values import NARROW

_aten = torch.ops.aten
_VIEWS = frozenset(
    {
        _aten.alias.default,
        _aten.clone.default,
        _aten.expand.default,
        _aten.permute.default,
        _aten.reshape.default,
        _aten.slice.Tensor,
        _aten.squeeze.dim,
        _aten.transpose.int,
        _aten.unsqueeze.default,
        _aten.view.default,
    }
)
_ONES = frozenset({_aten.new_ones.default, _aten.ones.default, _aten.ones_like.default})
ANDS = frozenset({_aten.bitwise_and.Tensor, _aten.logical_and.default})
_INTEGERS = (torch.int64,)  # narrower ones wrap around
_STEPS = 2_500_000  # of the solver: half a second or so
_NEW_MEMORY = (
    "batch_norm",
    "bilinear",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "linear",
    "matmul",
    "scaled_dot_product_attention",
)
"""Composite operators of aten that never return their input or a view of it, as only their code shows."""


@dataclass(frozen=True)
class Count:
    """0, 1, 2, ... along one axis of a tensor whose other axes have the size 1."""

    axis: int


def value_of(node: Any) -> torch.Tensor | None:
    """The fake tensor of a node."""
    value = node.meta.get("val") if isinstance(node, Node) else None
    return value if isinstance(value, torch.Tensor) else None


def is_true_everywhere(node: Any) -> bool:
    """Whether a tensor of booleans holds nothing but True, at every size."""
    value = value_of(node)
    if value is None or value.dtype is not torch.bool:
        return False
    if node.target in _VIEWS:
        return is_true_everywhere(node.args[0])
    if node.target in _ONES:
        return True
    if node.target in ANDS:
        return all(is_true_everywhere(each) for each in node.args)
    if node.target is _aten.ge.Scalar:
        lowest = find_lower_bound(node.args[0])
        return lowest is not None and isinstance(node.args[1], int) and lowest >= node.args[1]
    return False


def find_lower_bound(node: Any) -> int | None:
    """A number that no element of an integer tensor is below, where the node shows one."""
    value = value_of(node)
    if value is None or value.dtype not in _INTEGERS:
        return None
    if node.target in _VIEWS:
        return find_lower_bound(node.args[0])
    if node.target is _aten.arange.default:
        return 0
    if node.target is _aten.add.Tensor and not node.kwargs:
        base, added = find_lower_bound(node.args[0]), node.args[1]
        return base + added if base is not None and isinstance(added, int) else None
    return None


def find_count(node: Any) -> Count | None:
    """The axis along which an integer tensor counts its places, where the node shows that it does."""
    value = value_of(node)
    if value is None or value.dtype not in _INTEGERS:
        return None
    if node.target is _aten.arange.default:
        return Count(0)
    if node.target is _aten.unsqueeze.default:
        inner = find_count(node.args[0])
        place = node.args[1] % value.dim()
        return None if inner is None else Count(inner.axis + (place <= inner.axis))
    return None


def same_shape(one: torch.Tensor, other: torch.Tensor, names: Mapping[str, Any] | None = None) -> bool:
    """Whether two shapes have the same sizes by their expressions. Adds no guard."""
    return one.dim() == other.dim() and all(
        same_size(left, right, names) for left, right in zip(one.shape, other.shape, strict=True)
    )


def same_size(left: Any, right: Any, names: Mapping[str, Any] | None = None) -> bool:
    """`names` maps torch's symbols to expressions of the dims; two symbols of one dim are the same size."""
    one, other = _expression(left), _expression(right)
    if one == other:
        return True
    if isinstance(one, int) or isinstance(other, int) or not names:
        return False
    named = in_dims(str(one), names)
    return named is not None and named == in_dims(str(other), names)


def _expression(size: Any) -> Any:
    return size.node.expr if isinstance(size, torch.SymInt) else size


def admit_empty_means(model: ir.Model, domain: Domain) -> int:
    """Replace each ReduceMean over an axis that may be empty in the domain by nodes that give NaN there. Returns how many.

    Sizes of the model have to be expressions of the user's dims.
    """
    sizes = _Sizes(domain)
    nodes = [node for node in model.graph.all_nodes() if node.op_type == "ReduceMean" and _may_be_empty(node, sizes)]
    for node in nodes:
        _replace(node)
    return len(nodes)


class _Sizes:
    """Which sizes of a domain may be 0; a size that is no expression of the dims may be."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._known: dict[str, bool] = {}
        self.has_zero = any(dim.min == 0 for dim in domain.dims)

    def may_be_zero(self, size: int | ir.SymbolicDim) -> bool:
        if isinstance(size, int):
            return size == 0
        if size.value is None:
            return True
        if size.value not in self._known:
            self._known[size.value] = not self._is_some(parse_expr(size.value))
        return self._known[size.value]

    def _is_some(self, size: Expr) -> bool:
        if not is_about(size, self._domain.names):
            return False
        return decide(self._domain, Compare(">=", size, Number(1)), steps=_STEPS).proved


def _may_be_empty(node: ir.Node, sizes: _Sizes) -> bool:
    values = node.inputs[0]
    axes = node.inputs[1] if len(node.inputs) > 1 else None
    if values is None or values.shape is None:
        # A node that a translation made for itself: over axes that are never empty, or over all, as losses do.
        return values is not None and axes is None and sizes.has_zero
    shape = values.shape
    given = ir.convenience.get_const_tensor(axes) if axes is not None else None
    places = [int(axis) for axis in given.numpy().ravel()] if given is not None else range(len(shape))
    return any(sizes.may_be_zero(shape[place]) for place in places or range(len(shape)))


def _replace(node: ir.Node) -> None:
    tape = Tape()
    values, old, graph = node.inputs[0], node.outputs[0], node.graph
    assert values is not None and graph is not None
    is_narrow = values.dtype in NARROW
    wide = tape.op("Cast", [values], {"to": ir.DataType.FLOAT}) if is_narrow else values
    total = tape.op("ReduceSum", [wide, *node.inputs[1:]], node.attributes, name=node.name)
    sizes = tape.op("Shape", [values])
    axes = node.inputs[1] if len(node.inputs) > 1 else None
    counted = sizes if axes is None else tape.op("Gather", [sizes, axes])
    count = tape.op("ReduceProd", [counted], {"keepdims": 0})
    mean = tape.op("Div", [total, tape.op("CastLike", [count, wide])])
    mean = tape.op("CastLike", [mean, values]) if is_narrow else mean
    mean.name, mean.type, mean.shape = old.name, old.type, old.shape
    for made in tape.nodes:
        made.metadata_props.update(node.metadata_props)
    ir.convenience.replace_all_uses_with(old, mean, replace_graph_outputs=True)
    graph.insert_before(node, tape.nodes)
    graph.remove(node, safe=True)


def is_composite(target: OpOverload) -> bool:
    """Whether an operator is a function of other operators, which torch's own pass takes apart."""
    name = target.name()
    return bool(
        torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")
        or torch._C.DispatchKey.CompositeImplicitAutograd in target.py_kernels
    )


def returns_new_memory(node: Node) -> bool:
    """Whether a node gives one tensor, which shares memory with no other."""
    if node.target is operator.getitem:
        return _is_only_reader_of_new_memory(node)
    return _declares_new_memory(node) and isinstance(node.meta.get("val"), torch.Tensor)


def _is_only_reader_of_new_memory(node: Node) -> bool:
    """Whether a node picks one of several results, each of them new memory, and no other node picks the same one."""
    source, index = node.args
    if not isinstance(source, Node) or not _declares_new_memory(source):
        return False
    if not isinstance(source.target, OpOverload) or len(source.target._schema.returns) < 2:  # a list may hold views
        return False
    pickers = [user for user in source.users if user.target is operator.getitem and user.args[1] == index]
    return pickers == [node] and isinstance(node.meta.get("val"), torch.Tensor)


def _declares_new_memory(node: Node) -> bool:
    target = node.target
    if not isinstance(target, OpOverload) or not target._schema.returns:
        return False
    is_known = target.namespace == "aten" and target._opname in _NEW_MEMORY
    is_known = is_known or (target is _aten.einsum.default and len(node.all_input_nodes) > 1)  # of one tensor, a view
    says_so = all(returned.alias_info is None for returned in target._schema.returns)
    return says_so and (is_known or not is_composite(target))
