"""Every form in which axes can be declared, read into one: {path: {axis: what it is}}.

Words, {axis: name}, lists of axes (torch's dynamic_axes), and trees that mirror the inputs (torch's dynamic_shapes) can
be mixed; what is said of a container holds for every tensor in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import torch

from anyshape.domain import Dim, Expr, Number, describe_dim
from anyshape.findings import DeclarationError, counted
from anyshape.inputs.axis_messages import no_axes_here, two_ranges, unreadable_form, unreadable_whole, wrong_rank
from anyshape.inputs.call_messages import not_an_axis_owner, tensor_declared_as_value, unknown_input
from anyshape.inputs.calls import BoundCall
from anyshape.inputs.torch_forms import (
    Pairs,
    collected_shapes,
    is_torch_dim,
    match_cache_lists,
    match_cache_parts,
    read_torch_dim,
)
from anyshape.inputs.words import (
    AsItIs,
    AxisWord,
    Open,
    Place,
    call_place,
    check_number,
    find_axis,
    find_place,
    read_output_words,
    read_word,
    read_words,
    split_words,
)

VALUE = "value"


@dataclass
class Forms:
    """What was read: axes and numbers of inputs, axes of outputs, dims with ranges. Only `read_forms` fills it."""

    axes: dict[str, dict[int, AxisWord]] = field(default_factory=dict)
    numbers: dict[str, AxisWord] = field(default_factory=dict)
    outputs: dict[str, dict[int, Expr]] = field(default_factory=dict)
    dims: dict[str, Dim] = field(default_factory=dict)


def read_forms(
    dynamic: Any, bound: BoundCall, aliases: Mapping[str, str], output_names: Sequence[str] | None = None
) -> Forms:
    """The declaration in one form. `aliases` maps names given to inputs to their paths."""
    reader = _Reader(dict(bound.leaves), call_place(bound), aliases, output_names)
    reader.read_call(dynamic)
    return reader.forms


class _Reader:
    """One declaration against one call."""

    def __init__(
        self, values: Mapping[str, Any], root: Place, aliases: Mapping[str, str], output_names: Sequence[str] | None
    ) -> None:
        self.values, self.root, self.aliases, self.output_names = values, root, aliases, output_names
        self.forms = Forms()

    def read_call(self, dynamic: Any) -> None:
        if dynamic is None:
            return
        if isinstance(dynamic, str):
            self._read_only_tensor(dynamic)
        elif isinstance(dynamic, Mapping):
            for key, form in dynamic.items():
                place = find_place(self.root, str(key), self.aliases)
                if place is None:
                    self._read_output(str(key), form)
                else:
                    self._read(place, form)
        elif isinstance(dynamic, (tuple, list)):
            self._read_mirror(self.root, dynamic)
        elif (shapes := collected_shapes(dynamic)) is not None:
            self._read_collected(dynamic, shapes)
        else:
            raise DeclarationError(unreadable_whole(dynamic))

    def _read_collected(self, dynamic: Any, shapes: dict[int, Any]) -> None:
        """torch's ShapesCollection has a form for each tensor itself, not for its path."""
        found = {path: id(value) for path, value in self.values.items() if id(value) in shapes}
        if set(found.values()) != set(shapes):
            raise DeclarationError(unreadable_whole(dynamic, "it has a tensor that is not among the inputs."))
        for path, key in found.items():
            self._read_leaf(path, shapes[key])

    def _read_only_tensor(self, words: str) -> None:
        """`dynamic="batch seq 64"` is enough when there is one tensor."""
        tensors = [path for path, value in self.values.items() if isinstance(value, torch.Tensor)]
        if len(tensors) != 1:
            why = f"words alone are enough for one tensor, and there are {len(tensors)}: {', '.join(tensors)}."
            raise DeclarationError(unreadable_whole(words, why))
        self._read_leaf(tensors[0], words)

    def _read(self, place: Place, form: Any) -> None:
        if form is None:
            return
        if place.is_leaf:
            self._read_leaf(place.path, form)
        elif isinstance(form, Mapping) and (pairs := match_cache_lists(place, form)) is not None:
            self._read_pairs(pairs)
        elif isinstance(form, Mapping) and not _is_axis_map(form):
            for key, inner in form.items():
                child = find_place(place, str(key), {})
                if child is None:
                    raise DeclarationError(unknown_input(f"{place.path}.{key}", list(self.values)))
                self._read(child, inner)
        elif isinstance(form, (tuple, list)) and not _is_axis_list(form):
            self._read_mirror(place, form)
        else:
            tensors = [path for path in place.leaves() if isinstance(self.values[path], torch.Tensor)]
            if form and not tensors:
                raise DeclarationError(no_axes_here(place.path, form))
            for path in tensors:
                self._read_leaf(path, form)

    def _read_mirror(self, place: Place, form: Sequence[Any]) -> None:
        children = list(place.children.values())
        if (pairs := match_cache_parts(place, form)) is not None:
            self._read_pairs(pairs)
            return
        if len(form) != len(children):
            why = f"it has {counted(len(form), 'part')}, and {place.path or 'the call'} has {len(children)}."
            finding = unreadable_form(place.path, form, why) if place.path else unreadable_whole(form, why)
            raise DeclarationError(finding)
        self._read_pairs(list(zip(children, form, strict=True)))

    def _read_pairs(self, pairs: Pairs) -> None:
        for place, form in pairs:
            self._read(place, form)

    def _read_leaf(self, path: str, form: Any) -> None:
        value = self.values[path]
        if isinstance(value, torch.Tensor):
            self.forms.axes.setdefault(path, {}).update(self._read_tensor(path, tuple(value.shape), form))
        else:
            self._read_number(path, value, form)

    def _read_tensor(self, path: str, shape: tuple[int, ...], form: Any) -> dict[int, AxisWord]:
        if isinstance(form, str):
            return read_words(path, form, shape)
        if isinstance(form, Mapping):
            if VALUE in form:
                raise DeclarationError(tensor_declared_as_value(path))
            return {
                find_axis(path, axis, shape): self._read_axis(path, axis, word, shape)
                for axis, word in _axes(path, form)
            }
        if isinstance(form, (list, tuple)):
            if _is_axis_list(form):
                return {find_axis(path, axis, shape): Open() for axis in form}
            if len(form) != len(shape):
                raise DeclarationError(wrong_rank(path, str(form), len(form), shape))
            if None in form and any(type(word) is int for word in form) and all(_is_unnamed(word) for word in form):
                form = [Open(must=False) if word is None else word for word in form]  # [None, None, 10]
            return {axis: self._read_axis(path, axis, word, shape) for axis, word in enumerate(form)}
        raise DeclarationError(unreadable_form(path, form))

    def _read_axis(self, path: str, axis: int, word: Any, shape: tuple[int, ...]) -> AxisWord:
        meaning = self._read_size(path, word)
        check_number(path, find_axis(path, axis, shape), meaning, shape, word)
        return meaning

    def _read_size(self, path: str, word: Any) -> AxisWord:
        if isinstance(word, Open):
            return word
        if word is None:
            return AsItIs()
        if type(word) is int:
            return Number(word)
        if isinstance(word, str):
            return read_word(path, word)
        if isinstance(word, Expr):
            return word
        if is_torch_dim(word):
            meaning, dim = read_torch_dim(word)
            if dim is not None and self.forms.dims.setdefault(dim.name, dim) != dim:
                described = [describe_dim(each) for each in (self.forms.dims[dim.name], dim)]
                raise DeclarationError(two_ranges(dim.name, *described))
            return meaning
        raise DeclarationError(unreadable_form(path, word))

    def _read_number(self, path: str, value: Any, form: Any) -> None:
        written = form.get(VALUE, "") if isinstance(form, Mapping) else form
        is_number = type(value) in (int, float)
        if is_number and written == VALUE:
            self.forms.numbers[path] = Open()
        elif is_number and written and (isinstance(form, Mapping) or is_torch_dim(form)):
            meaning = self._read_size(path, written)
            if not isinstance(meaning, AsItIs):
                self.forms.numbers[path] = meaning
        elif not (isinstance(form, Mapping) and not form):
            kind = f"the {type(value).__name__} {value!r}"
            raise DeclarationError(not_an_axis_owner(path, kind, repr(form)))

    def _read_output(self, name: str, form: Any) -> None:
        inputs = [*self.values, *self.aliases]
        known = self.output_names or ()
        near_input = get_close_matches(name, inputs, n=1, cutoff=0.8)
        if name not in known and (known or near_input):
            raise DeclarationError(unknown_input(name, list(self.values), known))
        if isinstance(form, str):
            words = read_output_words(name, form)
        elif isinstance(form, Mapping):
            words = {axis: self._read_size(name, word) for axis, word in _axes(name, form)}
        elif isinstance(form, (list, tuple)):
            words = {} if _is_axis_list(form) else {axis: self._read_size(name, w) for axis, w in enumerate(form)}
        else:
            raise DeclarationError(unreadable_form(name, form))
        self.forms.outputs[name] = {axis: word for axis, word in words.items() if isinstance(word, Expr)}


def _axes(path: str, form: Mapping[Any, Any]) -> list[tuple[int, Any]]:
    for axis in form:
        if type(axis) is not int:
            raise DeclarationError(unreadable_form(path, form, f"{axis!r} is no axis: axes are numbers."))
    return list(form.items())


def _is_axis_map(form: Mapping[Any, Any]) -> bool:
    """{0: "batch"} rather than {"key": ...} or {0: {0: "batch"}}."""
    return all(key == VALUE or (type(key) is int and _is_axis_word(word)) for key, word in form.items())


def _is_axis_word(word: Any) -> bool:
    if isinstance(word, str):
        return len(split_words(word)) == 1
    return word is None or type(word) is int or isinstance(word, Expr) or is_torch_dim(word)


def _is_axis_list(form: Sequence[Any]) -> bool:
    """[0, 1] of torch's dynamic_axes; a tuple of numbers is a shape that never changes."""
    return isinstance(form, list) and bool(form) and all(type(axis) is int for axis in form)


def _is_unnamed(word: Any) -> bool:
    return word is None or type(word) is int
