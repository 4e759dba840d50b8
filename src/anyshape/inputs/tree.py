"""Nested inputs and outputs as a flat list of leaves with paths: `past_key_values.0.key`, `xs.1`, `inputs.extra`.

Independent of torch's pytree registry, which is used last: it has neither plain dataclasses nor caches, and what
others register there must not change our paths.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from anyshape.findings import AnyshapeError, DeclarationError, PromiseBroken
from anyshape.inputs.call_messages import input_not_dense, no_output_of_a_file, output_not_dense, unknown_container
from anyshape.inputs.structure import (
    Absent,
    Items,
    Keyed,
    Leaf,
    Record,
    Registered,
    Structure,
    cache_structure,
    is_cache,
    join,
)
from anyshape.modules.module_forms import Carried

_SPARSE = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
_PLAIN = (bool, int, float, str, torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool)
_SETTINGS = (complex, enum.Enum, torch.dtype, torch.device, torch.layout, torch.memory_format)

Leaves = list[tuple[str, Any]]


def flatten(value: Any, root: str = "") -> tuple[Leaves, Structure]:
    """The leaves with their paths, and the structure that `rebuild`s the value from them.

    numpy arrays come out as tensors. Raises DeclarationError on an object that is neither a leaf nor a container.
    """
    walker = _Walker([])
    structure = walker.walk(value, root)
    return walker.leaves, structure


def flatten_outputs(value: Any) -> Leaves:
    """A module's outputs as leaves: `output` when it is one value, `output.1` in a tuple, the key itself in a dict.

    Runtimes have no complex numbers: such a tensor comes out as pairs, on a last axis of 2 (`torch.view_as_real`). The
    state of a StatefulModule comes last. Raises PromiseBroken on what a file cannot return: a string, a dtype, an object.
    """
    if isinstance(value, Carried):
        return [*flatten_outputs(value.outputs), *value.state.items()]
    named = (
        isinstance(value, Mapping)
        or dataclasses.is_dataclass(value)
        or hasattr(type(value), "_fields")
        or is_cache(value)
    )
    walker = _Walker([], is_output=True)
    walker.walk(value, "" if named else "output")
    return [(path, _in_pairs(leaf)) for path, leaf in walker.leaves]


def _in_pairs(leaf: Any) -> Any:
    is_complex = isinstance(leaf, torch.Tensor) and leaf.is_complex()
    return torch.view_as_real(leaf.resolve_conj()) if is_complex else leaf


class _Walker:
    """One walk over a value, collecting its leaves."""

    def __init__(self, leaves: Leaves, *, is_output: bool = False) -> None:
        self.leaves = leaves
        self.is_output = is_output

    def walk(self, value: Any, path: str) -> Structure:
        if value is None:
            return Absent()
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
            value = torch.from_numpy(
                value.astype(value.dtype.newbyteorder("="))
            )  # a copy: a read-only array would warn
        if isinstance(value, torch.Tensor) and (form := _form(value)):
            self._refuse_form(path, form)
        if self.is_output and _is_no_output(value):
            raise PromiseBroken(no_output_of_a_file(path, value))
        if isinstance(value, _PLAIN + _SETTINGS):
            self.leaves.append((path, value))
            return Leaf()
        for is_kind, take in _KINDS:
            if is_kind(value):
                return take(self, value, path) if self.is_output else self._taken(take, value, path)
        if self.is_output:
            raise PromiseBroken(no_output_of_a_file(path, value))
        raise DeclarationError(unknown_container(path, value))

    def _taken(self, take: Take, value: Any, path: str) -> Structure:
        """A container of inputs; one whose own code raises when it is looked into is none."""
        try:
            return take(self, value, path)
        except AnyshapeError:
            raise
        except Exception as error:
            raise DeclarationError(unknown_container(path, value)) from error

    def _refuse_form(self, path: str, form: str) -> None:
        if self.is_output:
            raise PromiseBroken(output_not_dense(path, form))
        raise DeclarationError(input_not_dense(path, form))

    def items(self, value: Any, path: str) -> Structure:
        names = _item_names(value)
        return Items(type(value), names, self._children(zip(names, value, strict=True), path))

    def keyed(self, value: Any, path: str) -> Structure:
        keys = tuple(value.keys())
        named = [(str(key), value[key]) for key in keys]
        as_keywords = dataclasses.is_dataclass(value)  # a ModelOutput is both, and its fields are its keys
        return Keyed(type(value), keys, self._children(named, path), as_keywords)

    def record(self, value: Any, path: str) -> Structure:
        names = tuple(field.name for field in dataclasses.fields(value) if hasattr(value, field.name))
        return Record(type(value), names, self._children([(name, getattr(value, name)) for name in names], path))

    def cache(self, value: Any, path: str) -> Structure:
        return cache_structure(value, path, self.walk, is_output=self.is_output)

    def registered(self, value: Any, path: str) -> Structure:
        node = torch.utils._pytree.SUPPORTED_NODES[type(value)]
        children, context = node.flatten_fn(value)
        names = _registered_names(node, value, len(children))
        inner = self._children(zip(names, children, strict=True), path)
        return Registered(type(value), names, inner, lambda items: node.unflatten_fn(items, context))

    def _children(self, named: Any, path: str) -> tuple[Structure, ...]:
        return tuple(self.walk(child, join(path, name)) for name, child in named)


def _form(tensor: torch.Tensor) -> str:
    """The form of a tensor that is not dense, in words: nested, sparse, or of another layout; "" for a dense one."""
    if tensor.is_nested:
        return "a nested tensor"
    if tensor.layout in _SPARSE:
        return f"a sparse tensor ({tensor.layout})"
    if tensor.is_quantized:
        return "a quantized tensor"
    return f"a tensor of layout {tensor.layout}" if tensor.layout is not torch.strided else ""


def _is_no_output(value: Any) -> bool:
    is_setting = isinstance(value, _SETTINGS) and not isinstance(value, (int, float, complex))
    return is_setting or isinstance(value, str)


def _item_names(value: Any) -> tuple[str, ...]:
    fields = getattr(type(value), "_fields", None)
    if fields is None and hasattr(type(value), "n_sequence_fields"):  # what torch.max and its like give back
        fields = type(value).__match_args__
    return tuple(fields) if fields is not None else tuple(str(index) for index in range(len(value)))


def _registered_names(node: Any, value: Any, count: int) -> tuple[str, ...]:
    with_keys = getattr(node, "flatten_with_keys_fn", None)
    if with_keys is None:
        return tuple(str(index) for index in range(count))
    return tuple(_spoken_key(key) for key, _ in with_keys(value)[0])


def _spoken_key(key: Any) -> str:
    """`.weight`, `['weight']` and `[0]` as torch writes keys, without their clothes."""
    for attribute in ("key", "name", "idx"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key).strip(".[]'\"")


def _is_registered(value: Any) -> bool:
    return type(value) in torch.utils._pytree.SUPPORTED_NODES


Take = Callable[["_Walker", Any, str], Structure]

# Asked in this order: a ModelOutput is a mapping and a dataclass, a cache may be registered by someone else.
_KINDS: tuple[tuple[Callable[[Any], bool], Take], ...] = (
    (is_cache, _Walker.cache),
    (lambda value: isinstance(value, (tuple, list)), _Walker.items),
    (lambda value: isinstance(value, Mapping), _Walker.keyed),
    (lambda value: dataclasses.is_dataclass(value) and not isinstance(value, type), _Walker.record),
    (_is_registered, _Walker.registered),
)
