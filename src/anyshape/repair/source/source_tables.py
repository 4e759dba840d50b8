"""Tables of one size in the source: written anew where they are used, as text that makes them at any size.

self.register_buffer("grid", torch.linspace(0, 1, 5))       in __init__
    x * self.grid        ->        x * torch.linspace(0, 1, x.shape[1])

Each number that equals the size is a reading of its own: in `torch.arange(5) / 5` there are two, and both are tried.

    zeros of (1, 3, 6)              ->  self.hidden.new_zeros(1, x.shape[0], 6)
    equal rows                      ->  self.bias[:1].expand(x.shape[0], -1)
    0, 1, 2, ...                    ->  torch.arange(x.shape[1], device=self.steps.device)
    a triangle                      ->  self.mask.new_ones(x.shape[1], x.shape[1]).triu(1)

A table without a pattern can be cut, `self.pos[:, : x.shape[1]]`. A parameter can only be cut: its values come from training,
and equal ones are no pattern. All of these are guesses: `[0, 0, 0, 0, 0]` may be `i // 16`, and `[0.2] * 5` may be 1 / 5.
"""

from __future__ import annotations

import ast
import copy
import linecache
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import FunctionType
from typing import Any

import numpy as np
import torch

from anyshape.repair.known_constants import Array, Counting, Diagonal, find_counting, find_diagonal, varying_axes

_MOST_NUMBERS = 4
_MOST_DEPTH = 6
_LONGEST = 400
_MOST_ELEMENTS = 1 << 22


@dataclass(frozen=True)
class Definition:
    """What a method gives to an attribute, or returns (`name()`), with its own names put in; and its name of `self`."""

    expression: ast.expr
    self_name: str


def read_definitions(functions: Iterable[FunctionType]) -> dict[str, list[Definition]]:
    """The definitions of attributes in the functions' files, by the name of the attribute."""
    found: dict[str, list[Definition]] = {}
    for file in dict.fromkeys(function.__code__.co_filename for function in functions):
        try:
            tree = ast.parse("".join(linecache.getlines(file)))
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.args.args:
                for name, definition in _definitions(node):
                    found.setdefault(name, []).append(definition)
    return found


def _definitions(function: ast.FunctionDef) -> Iterator[tuple[str, Definition]]:
    me = function.args.args[0].arg
    names = _simple_names(function)
    for node in ast.walk(function):
        attribute, value = _assigned(node, me)
        if isinstance(node, ast.Return) and node is function.body[-1]:
            attribute, value = f"{function.name}()", node.value
        if value is None:
            continue
        try:
            yield attribute, Definition(_substituted(value, names, 0), me)
        except RecursionError:
            continue


def _assigned(node: ast.AST, me: str) -> tuple[str, ast.expr | None]:
    """The attribute and the expression of `self.a = ...`, and of `self.register_buffer("a", ...)`."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == me:
            return target.attr, node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) >= 2:
        name, value = node.args[:2]
        if node.func.attr == "register_buffer" and isinstance(name, ast.Constant):
            return str(name.value), value
    return "", None


def _simple_names(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """Names that are set once, by one expression, and parameters with a default; not those that are written in part."""
    arguments = function.args
    found: dict[str, ast.expr] = {}
    defaults = zip(reversed(arguments.args), reversed(arguments.defaults), strict=False)
    found.update((argument.arg, default) for argument, default in defaults)
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    found.update((argument.arg, default) for argument, default in named if default is not None)
    stored: list[str] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored.append(node.id)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            stored += [node.value.id] * 2
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
    return {name: value for name, value in found.items() if stored.count(name) <= 1}


def _substituted(expression: ast.expr, names: Mapping[str, ast.expr], depth: int) -> ast.expr:
    if depth > _MOST_DEPTH:
        raise RecursionError

    class Substitute(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return _substituted(names[node.id], names, depth + 1) if node.id in names else node

    changed: ast.expr = Substitute().visit(copy.deepcopy(expression))
    return changed


def inlined_texts(
    held: str, definitions: Mapping[str, Sequence[Definition]], sizes: Mapping[int, str]
) -> Iterator[str]:
    """Texts for `self.NAME`, one for each choice of numbers that are a size: `sizes` has the text of each size."""
    me, _, attribute = held.rpartition(".")
    for definition in definitions.get(attribute, ()) if me and "." not in me else ():
        places = [
            index
            for index, node in enumerate(ast.walk(definition.expression))
            if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value in sizes
        ]
        fewest = 0 if _reads_shape(definition.expression) else 1  # `torch.ones(x.shape[1])` follows sizes as it is
        for count in range(min(len(places), _MOST_NUMBERS), fewest - 1, -1):
            for chosen in combinations(places, count):
                text = _written(definition, me, chosen, sizes)
                if len(text) <= _LONGEST:
                    yield text


def _reads_shape(expression: ast.expr) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr in ("shape", "size") for node in ast.walk(expression))


def _written(definition: Definition, me: str, chosen: Sequence[int], sizes: Mapping[int, str]) -> str:
    expression = copy.deepcopy(definition.expression)
    for index, node in enumerate(list(ast.walk(expression))):
        if isinstance(node, ast.Name) and node.id == definition.self_name:
            node.id = me
        if index in chosen and isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            text = sizes[int(node.value)]
            node.value = _Text(f"({text})" if " " in text else text)
    text = ast.unparse(expression)
    is_whole = isinstance(
        expression, (ast.Call, ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Tuple, ast.List)
    )
    return text if is_whole else f"({text})"


class _Text(int):
    """A constant whose text is another one."""

    def __new__(cls, text: str) -> _Text:
        made = super().__new__(cls, 0)
        made.text = text
        return made

    text: str

    def __repr__(self) -> str:
        return self.text


def table_texts(held: str, table: torch.Tensor, axes: Mapping[int, str]) -> Iterator[str]:
    """Texts for the table `held` that follow the sizes in `axes`, the one that goes on with its pattern first."""
    if table.numel() > _MOST_ELEMENTS or not table.numel() or table.dtype is torch.bfloat16:
        return
    array = table.detach().cpu().numpy()
    shape = [axes.get(axis, str(size)) for axis, size in enumerate(table.shape)]
    text = _regular(held, array, axes, shape) if not isinstance(table, torch.nn.Parameter) else ""
    if text:
        yield text
    cut = ", ".join(f": {axes[axis]}" if axis in axes else ":" for axis in range(max(axes) + 1))
    yield f"{held}[{cut}]"


def _regular(held: str, array: Array, axes: Mapping[int, str], shape: Sequence[str]) -> str:
    varying = varying_axes(array, axes)
    if not varying:
        return _equal(held, array, axes, shape)
    if len(varying) == 1:
        counting = find_counting(array, varying[0])
        return _counting(held, array, counting, axes) if counting is not None and len(axes) == 1 else ""
    rows, columns = varying[:2]
    is_square = len(varying) == 2 == len(axes) and axes[rows] == axes[columns] and columns == array.ndim - 1 == rows + 1
    diagonal = find_diagonal(array, rows, columns) if is_square else None
    return _diagonal(held, diagonal, shape) if diagonal is not None else ""


def _equal(held: str, array: Array, axes: Mapping[int, str], shape: Sequence[str]) -> str:
    """The same values along the axes that follow sizes."""
    if varying_axes(array, range(array.ndim)):
        cut = ", ".join(":1" if axis in axes else ":" for axis in range(max(axes) + 1))
        wide = ", ".join(axes.get(axis, "-1") for axis in range(array.ndim))
        return f"{held}[{cut}].expand({wide})"
    return _filled(held, array.reshape(-1)[0], shape)


def _filled(held: str, value: Any, shape: Sequence[str]) -> str:
    inside = ", ".join(shape)
    if value == 0 and not np.signbit(np.asarray(value, dtype=np.float64)):
        return f"{held}.new_zeros({inside})"
    if value == 1:
        return f"{held}.new_ones({inside})"
    return f"{held}.new_full(({inside}{',' if len(shape) == 1 else ''}), {_number(value)})"


def _number(value: Any) -> str:
    number = value.item()
    is_plain = isinstance(number, int) or np.isfinite(number)
    return repr(number) if is_plain else f'float("{number}")'


def _counting(held: str, array: Array, counting: Counting, axes: Mapping[int, str]) -> str:
    """`start + step * i` along one axis; the other axes have to have one element each."""
    if array.size != array.shape[counting.axis]:
        return ""
    size = axes[counting.axis]
    start, step = (int(each.flat[0]) for each in (counting.start, counting.step))
    text = f"torch.arange({size}, dtype={held}.dtype, device={held}.device)"
    text = text if step == 1 else f"{step} * {text}"
    text = text if start == 0 else f"{start} + {text}"
    if array.ndim == 1:
        return text if text.startswith("torch") else f"({text})"
    shape = ", ".join("-1" if axis == counting.axis else "1" for axis in range(array.ndim))
    return f"({text}).view({shape})" if not text.startswith("torch") else f"{text}.view({shape})"


def _diagonal(held: str, diagonal: Diagonal, shape: Sequence[str]) -> str:
    """Two values beside a diagonal, one of which has to be zero."""
    offset, here, there = diagonal.offset, diagonal.here, diagonal.there
    if diagonal.relation == "Equal":
        is_plain = offset == 0 and there == 0
        return f"{_filled(held, here[()], shape)}.tril().triu()" if is_plain else ""
    is_upper = diagonal.relation == "Greater"
    edge = offset + 1 if is_upper else offset - 1
    if here == 0 != there:  # the other side of the diagonal
        is_upper, edge, here, there = not is_upper, edge - 1 if is_upper else edge + 1, there, here
    if there != 0:
        return ""
    inside = "" if edge == 0 else str(edge)
    return f"{_filled(held, here[()], shape)}.{'triu' if is_upper else 'tril'}({inside})"
