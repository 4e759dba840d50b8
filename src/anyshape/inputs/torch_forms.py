"""Forms of declaration that torch and transformers have: labels of dynamic_axes, Dim and its kin, the inputs of a torch.export
program, and caches by layer, by kind of tensor, and flat.

A label that reads as arithmetic on other labels (`past + seq` beside `past` and `seq`) is that; torch writes it into the
file as text and means the same by it.

torch starts every Dim at 0 and does not tell a written 0 from that, so a lower end of 0 counts as not written: sizes
are at least 1 unless `where` says 0.

by layer   [[k0, v0], [k1, v1]]                                    as the cache holds them
by kind    [[k0, k1], [v0, v1]], {"key_cache": [k0, k1], ...}      as transformers registers its caches with torch
flat       [k0, v0, k1, v1]                                        as other libraries do; hybrid caches too: [k0, v0, state1];
           those of both halves of an EncoderDecoderCache, one after the other
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any

import torch
from torch.export import AdditionalInputs, ShapesCollection
from torch.export import Dim as TorchDim
from torch.utils import _pytree as pytree

from anyshape.domain import Dim, Expr, Number, Ref, is_about, parse_expr
from anyshape.findings import DeclarationError
from anyshape.inputs.calls import Inputs
from anyshape.inputs.fit_one import affine
from anyshape.inputs.words import KINDS, AsItIs, AxisWord, Open, Place

Axes = Mapping[str, Mapping[int, str]] | Mapping[str, Sequence[int]]
_HALVES = ("self_attention_cache", "cross_attention_cache")
_LISTS = {"key_cache": "key", "value_cache": "value"}


def name_labels(axes: Axes) -> dict[str, Mapping[int, str] | Sequence[int]]:
    """The same axes, each label spelled as a dim; labels that differ stay different."""
    labels = {label for places in axes.values() if isinstance(places, Mapping) for label in places.values()}
    taken = {label for label in labels if _is_name(label)}
    spelled: dict[str, str] = {}
    for label in sorted(labels - taken):
        if not _is_arithmetic_on(label, taken):
            spelled[label] = _unused(re.sub(r"\W+", "_", label).strip("_"), {*taken, *spelled.values()})
    return {
        name: {axis: spelled.get(label, label) for axis, label in places.items()}
        if isinstance(places, Mapping)
        else places
        for name, places in axes.items()
    }


def _is_arithmetic_on(label: str, dims: set[str]) -> bool:
    try:
        return is_about(parse_expr(label), dims)
    except DeclarationError:
        return False


def _is_name(label: str) -> bool:
    return label.isidentifier() and not iskeyword(label)


def _unused(name: str, taken: set[str]) -> str:
    name = name if _is_name(name) else f"dim_{name}".rstrip("_")
    while name in taken:
        name += "_"
    return name


def is_torch_dim(value: Any) -> bool:
    """Whether this is one of torch's words for a size."""
    return isinstance(value, TorchDim) or type(value) is type(TorchDim.AUTO)


def additional_examples(dynamic: Any) -> list[Inputs]:
    """The calls that a torch.export.AdditionalInputs has; an empty list for any other declaration."""
    if not isinstance(dynamic, AdditionalInputs):
        return []
    return [Inputs(tuple(args), dict(kwargs or {})) for args, kwargs in dynamic._examples]


def collected_shapes(dynamic: Any) -> dict[int, Any] | None:
    """The form of each tensor by its id, of a torch.export.ShapesCollection; None for any other declaration."""
    return dict(dynamic._shapes) if isinstance(dynamic, ShapesCollection) else None


def read_torch_dim(value: Any) -> tuple[AxisWord, Dim | None]:
    """Its expression for an axis, and the dim that it declares with a range, if it does."""
    if isinstance(value, TorchDim):
        root = getattr(value, "root", value)
        return _expression(value, root), _with_range(root)
    kind = value.type.name
    if kind == "STATIC":
        return AsItIs(), None
    return Open(kind == "DYNAMIC", value.min, value.max), None


def _expression(value: Any, root: Any) -> Expr:
    """A derived dim is linear in its root, so two of its values determine it."""
    if hasattr(value, "value"):
        return Number(int(value.value))
    if value is root:
        return Ref(str(value.__name__))
    offset = int(value.fn(0))
    return affine([(int(value.fn(1)) - offset, Ref(str(root.__name__)))], offset)


def _with_range(root: Any) -> Dim | None:
    if hasattr(root, "value"):
        return None
    low = root.min if isinstance(root.min, int) and root.min > 0 else None
    high = root.max if isinstance(root.max, int) else None
    name = str(root.__name__)
    if low is None and high is None:
        return Dim(name)
    return Dim(name, 1 if low is None else low, high, declared=True)


@dataclass(frozen=True)
class ProgramInputs:
    """The example, `dynamic` as `anyshape.export` takes it, and the rules for its dims, which have torch's names (`s77`)."""

    example: Inputs
    dynamic: dict[str, Any] | None
    where: tuple[str, ...]


def inputs_of_program(program: torch.export.ExportedProgram) -> ProgramInputs:
    """Read the declaration from a program; axes that are no plain symbol stay as the example has them."""
    args, kwargs = program.example_inputs or ((), {})
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    leaves = [
        _axes(nodes[name].meta.get("val")) if name in nodes else None for name in program.graph_signature.user_inputs
    ]
    by_place, by_name = pytree.tree_unflatten(leaves, program.call_spec.in_spec)
    names = list(inspect.signature(program.module().forward).parameters)
    dynamic = {**dict(zip(names, by_place, strict=False)), **by_name}
    used = {symbol for leaf in leaves if leaf for symbol in leaf.values()}
    where = [rule for symbol in sorted(used) for rule in _rules(symbol, program)]
    return ProgramInputs(Inputs(tuple(args), dict(kwargs)), dynamic if used else None, tuple(where))


def _axes(value: Any) -> dict[int, str] | None:
    """Axis -> symbol, for the axes of a tensor that are one."""
    if not isinstance(value, torch.Tensor):
        return None
    return {axis: str(size) for axis, size in enumerate(value.shape) if str(size).isidentifier()}


def _rules(symbol: str, program: torch.export.ExportedProgram) -> list[str]:
    """`1 <= s77 <= 32`, or `s77 >= 1` without an upper end."""
    ends = next((ends for known, ends in program.range_constraints.items() if str(known) == symbol), None)
    if ends is None:
        return []
    has_end = getattr(ends.upper, "is_Integer", False)
    return [f"{ends.lower} <= {symbol} <= {ends.upper}" if has_end else f"{symbol} >= {ends.lower}"]


Pairs = list[tuple[Place, Any]]


def match_cache_lists(place: Place, form: Mapping[Any, Any]) -> Pairs | None:
    """The tensors of a cache with the parts of {"key_cache": [...], "value_cache": [...]}; None for other forms."""
    if not _has_pairs(place) or set(form) != set(_LISTS):
        return None
    lists = [form[name] for name in _LISTS]
    return _by_kind(place, lists) if _is_by_kind(place, lists) else None


def match_cache_parts(place: Place, form: Sequence[Any]) -> Pairs | None:
    """The tensors of a cache with their parts of a list; None where the list mirrors the layers, or is none of a cache."""
    if _has_pairs(place) and _is_by_kind(place, form):
        return _by_kind(place, form)
    halves = [place.children[name] for name in _HALVES if name in place.children]
    layers = [_tensors(layer) for half in halves or [place] for layer in half.children.values()]
    if not all(layers):
        return None
    tensors = [tensor for layer in layers for tensor in layer]
    return list(zip(tensors, form, strict=True)) if len(form) == len(tensors) else None


def _has_pairs(place: Place) -> bool:
    """Whether this is a cache whose layers hold keys and values."""
    layers = place.children.values()
    return bool(layers) and all(kind in layer.children for layer in layers for kind in KINDS)


def _tensors(layer: Place) -> list[Place]:
    """The tensors of one layer of a cache: key and value, or its states; none where this is no layer of a cache."""
    if all(kind in layer.children for kind in KINDS):
        return [layer.children[kind] for kind in KINDS]
    return list(layer.children.values()) if layer.other_names else []


def _is_by_kind(place: Place, form: Sequence[Any]) -> bool:
    """Whether the parts are all keys, then all values. Of two layers, key and value of one are declared alike."""
    is_of_lists = len(form) == len(KINDS) and all(isinstance(part, (list, tuple)) for part in form)
    if not is_of_lists or any(len(part) != len(place.children) for part in form):
        return False
    return len(place.children) != len(KINDS) or form[0] == form[1]


def _by_kind(place: Place, form: Sequence[Sequence[Any]]) -> Pairs:
    layers = place.children.values()
    return [
        (layer.children[kind], part)
        for kind, parts in zip(KINDS, form, strict=True)
        for layer, part in zip(layers, parts, strict=True)
    ]
