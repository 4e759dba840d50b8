"""Sizes that a contract refuses although eager returns a result there, up to four times those of the case."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
import torch.utils._pytree as pytree

from anyshape.domain import Ref, Undefined, evaluate
from anyshape.records.contract import Contract

TIMES = 4


def refused_though_answered(contract: Contract, model: Any, args: Any, kwargs: Any) -> list[dict[str, int]] | None:
    """These sizes, one dim at a time; None where the inputs cannot be matched with the contract's.

    Sizes at which eager returns other outputs than at those of the case are left out.
    """
    leaves, structure = pytree.tree_flatten((args, kwargs))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    sizes = read_sizes(contract, [leaves[place] for place in places])
    if sizes is None:
        return None
    usual = structure_of_result(model, args, kwargs)
    found = []
    for name, size in sizes.items():
        for other in range(1, TIMES * size + 1):
            tried = {**sizes, name: other}
            if contract.domain.contains(tried):
                continue
            changed = list(leaves)
            for place, promise in zip(places, contract.inputs, strict=True):
                changed[place] = resized(leaves[place], promise.axes, tried)
            if structure_of_result(model, *pytree.tree_unflatten(changed, structure)) == usual:
                found.append({name: other})
    return found


def read_sizes(contract: Contract, tensors: list[torch.Tensor]) -> dict[str, int] | None:
    """The size of each dim in these inputs; None where the two do not fit."""
    if len(tensors) != len(contract.inputs):
        return None
    pairs = [
        (axis, size)
        for tensor, promise in zip(tensors, contract.inputs, strict=True)
        for axis, size in zip(promise.axes, tensor.shape, strict=False)
    ]
    sizes = {axis.name: size for axis, size in pairs if isinstance(axis, Ref)}
    if not set(contract.domain.names) <= set(sizes):
        return None
    return sizes if all(axis is None or evaluate(axis, sizes) == size for axis, size in pairs) else None


def resized(tensor: torch.Tensor, axes: tuple[Any, ...], sizes: Mapping[str, int]) -> torch.Tensor:
    """The tensor at these sizes: its own elements, repeated or left out."""
    for axis, size in enumerate(axes):
        try:
            wanted = tensor.shape[axis] if size is None else evaluate(size, sizes)
        except Undefined:
            wanted = tensor.shape[axis]
        if wanted != tensor.shape[axis] and tensor.shape[axis]:
            tensor = tensor.index_select(axis, torch.arange(max(wanted, 0)) % tensor.shape[axis])
    return tensor


def structure_of_result(model: Any, args: Any, kwargs: Any) -> list[bool] | None:
    """For each output of eager whether it is None; None where eager raises.

    Where these are others than at the case's sizes, no file can answer both.
    """
    try:
        with torch.no_grad():
            result = copy.deepcopy(model)(*copy.deepcopy(args), **copy.deepcopy(kwargs))
    except Exception:
        return None
    return [leaf is None for leaf in pytree.tree_leaves(result)]
