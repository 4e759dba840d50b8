"""Tables that a method of the module makes by expressions of numbers, written anew where they are used.

    self.register_buffer("grid", torch.linspace(0, 1, 5))       in __init__
    x * self.grid        ->        x * torch.linspace(0, 1, x.shape[1])

Each number that equals the size is a reading of its own: in `torch.arange(5) / 5` there are two, and both are tried.
"""

from __future__ import annotations

import ast
import copy
import linecache
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import FunctionType

_MOST_NUMBERS = 4
_MOST_DEPTH = 6
_LONGEST = 400


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
