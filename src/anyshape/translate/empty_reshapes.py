"""Reshape to computed sizes that may be 0.

    Reshape(x, [n, n - 1])     ->     Reshape<allowzero = 1>(x, [n, n - 1])     where n may be 1

Without `allowzero` a size of 0 is a copy of the input's size of that axis, which is another one, or none at all. Nodes whose
sizes are at least 1 on the whole domain stay as they are, and so do those with a size -1 or 0 among the constants: beside
`allowzero`, ONNX has no -1 for an empty tensor, and a constant 0 is meant as a copy.
"""

from __future__ import annotations

import onnx_ir as ir

from anyshape.domain import Domain
from anyshape.domain.intervals import Limits, interval_of, limits_of
from anyshape.domain.parse import parse_expr
from anyshape.findings import AnyshapeError
from anyshape.records.export import Exported
from anyshape.translate.lacking_forms import attribute_of


def allow_zeros(exported: Exported, domain: Domain) -> Exported:
    """The model is changed in place, and given back."""
    limits: Limits | None = None
    for node in exported.model.graph.all_nodes():
        if node.domain != "" or node.op_type != "Reshape" or attribute_of(node, "allowzero"):
            continue
        if not _has_computed_sizes(node.inputs[1]):
            continue
        limits = limits or limits_of(domain)
        if _may_be_empty(node.outputs[0].shape, limits):
            node.attributes["allowzero"] = ir.AttrInt64("allowzero", 1)
    return exported


def _may_be_empty(shape: ir.Shape | None, limits: Limits) -> bool:
    texts = [size.value for size in shape if isinstance(size, ir.SymbolicDim)] if shape is not None else []
    return any(text is not None and not _is_positive(text, limits) for text in texts)


def _is_positive(text: str, limits: Limits) -> bool:
    """Whether the size is known to be at least 1; one that values decide is not."""
    try:
        return interval_of(parse_expr(text), limits)[0] > 0
    except AnyshapeError:
        return False


def _has_computed_sizes(sizes: ir.Value | None) -> bool:
    """Whether the sizes are put together from numbers, and every constant among them is at least 1."""
    maker = sizes.producer() if sizes is not None else None
    if maker is None or maker.op_type != "Concat":
        return False
    constants = [ir.convenience.get_const_tensor(value) for value in maker.inputs if value is not None]
    return all((constant.numpy() > 0).all() for constant in constants if constant is not None)
