"""Whether a value is known to be all zeros, from the captured program that stands behind it.

The program is functional, so a tensor made of zeros stays so. Not finding out is safe: the zeros are then computed.
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

_ZEROS = ("aten::zeros", "aten::zeros_like", "aten::new_zeros")
_FILL_AT = {"aten::full": 1, "aten::full_like": 1, "aten::new_full": 2}
"""Where the fill value stands among the arguments."""
_REARRANGED = frozenset(
    f"aten::{name}"
    for name in (
        *("alias", "clone", "contiguous", "detach", "lift_fresh_copy", "to", "_to_copy"),
        *("expand", "index_select", "permute", "select", "slice", "squeeze", "transpose", "unsqueeze", "view"),
    )
)


def is_zero(value: ir.Value) -> bool:
    producer = value.producer()
    return producer is not None and _is_zero(producer.meta.get("node"))


def _is_zero(node: Any) -> bool:
    """`node` is an fx node of the captured program, or None where torch.onnx did not leave one."""
    schema = getattr(getattr(node, "target", None), "_schema", None)
    if schema is None:
        return False
    if schema.name in _REARRANGED:
        return _is_zero(node.args[0])
    if schema.name in _FILL_AT:
        return bool(node.args[_FILL_AT[schema.name]] == 0)
    return schema.name in _ZEROS
