"""Means over an axis that the domain lets be empty: NaN, as in torch.

    ReduceMean(x, axes)  ->  ReduceSum(x, axes) / number of elements,   where a size may be 0 (0 / 0 is NaN)

ONNX leaves the mean of nothing open, and onnxruntime 1.31 answers 0. Where the domain has at least one element the node
stays as it is.
"""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.tape import Tape

from anyshape.domain import Compare, Domain, Expr, Number, decide, is_about, parse_expr
from anyshape.translate.operators.size_values import NARROW

_TIMEOUT_MS = 500


def admit_empty_means(model: ir.Model, domain: Domain) -> int:
    """Sizes are in the user's dims by now. Returns how many nodes were changed."""
    sizes = _Sizes(domain)
    nodes = [node for node in model.graph.all_nodes() if node.op_type == "ReduceMean" and _may_be_empty(node, sizes)]
    for node in nodes:
        _replace(node)
    return len(nodes)


class _Sizes:
    """Which sizes of a domain may be 0; a size that no expression of the dims says may be."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._known: dict[str, bool] = {}

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
        return decide(self._domain, Compare(">=", size, Number(1)), timeout_ms=_TIMEOUT_MS).status == "proved"


def _may_be_empty(node: ir.Node, sizes: _Sizes) -> bool:
    values = node.inputs[0]
    if values is None or values.shape is None:  # inside a translation, which knows what it averages
        return False
    shape = values.shape
    axes = node.inputs[1] if len(node.inputs) > 1 else None
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
