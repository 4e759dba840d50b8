"""Operators whose results are new memory: not an argument, and no view of one."""

from __future__ import annotations

import operator

import torch
from torch._ops import OpOverload
from torch.fx import Node

_aten = torch.ops.aten
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
