"""The edit that would free a baked-in size: the literal on the user's line -> the size that it stands for.

Only an edit that parses and changes exactly one literal is offered; otherwise none, never a guess.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from anyshape.findings import Source

_ANY = "-1"
_RESHAPING = ("view", "reshape", "expand", "zeros", "ones", "full", "empty", "randn", "new_zeros", "new_ones", "repeat")


Pinned = Mapping[str, tuple[int, Mapping[str, int]]]
"""Each dim that answers at one size only: that size, and where it can be read (the name of an input -> its axis)."""


def propose_edit(source: Source | None, pinned: Pinned, dim: str) -> str:
    """The line with the dim's size replaced by an input's shape, or by -1; empty when the line shows no such literal.

    Sizes of the other pinned dims that the line shows are replaced as well: one edit frees all of them.
    """
    if source is None or not source.text:
        return ""
    tree = _parse(source.text)
    if tree is None:
        return ""
    found = {name: literal for name, (size, _) in pinned.items() if (literal := _only_literal(tree, size)) is not None}
    if dim not in found or len(set(found.values())) != len(found):
        return ""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    texts = {name: _read_from(pinned[name][1], names) for name in found}
    if list(texts.values()).count(_ANY) > 1:
        return ""
    line = source.text
    for name in sorted(found, key=lambda name: -found[name].col_offset):  # from the right: columns to the left stay
        line = _replaced(line, found[name], texts[name])
    return line


def propose_part(source: Source | None, held: str, shape: Sequence[int], pinned: Pinned) -> str:
    """The line with a part of a tensor that the module holds, in place of all of it; empty when the line shows no such tensor.

    `x + self.pos`, where `pos` has 16 rows and the input `x` a dim that answers at 16 only  ->  `x + self.pos[: x.shape[1]]`
    """
    tree = _parse(source.text) if source is not None else None
    if source is None or tree is None:
        return ""
    attribute = held.rpartition(".")[2]
    taken = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Subscript)}
    uses = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == attribute and id(node) not in taken
    ]
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    held_sizes = [size for size, _ in pinned.values()]
    if any(held_sizes.count(size) > 1 for size in shape):  # which of two dims an axis follows is not known
        return ""
    sizes = {size: _read_from(places, names) for size, places in pinned.values()}
    parts = [f": {sizes[size]}" if sizes.get(size, _ANY) != _ANY else ":" for size in shape]
    while parts and parts[-1] == ":":
        parts.pop()
    if len(uses) != 1 or not parts:
        return ""
    use = ast.get_source_segment(source.text, uses[0]) or ""
    return _replaced(source.text, uses[0], f"{use}[{', '.join(parts)}]")


def _only_literal(tree: ast.AST, size: int) -> ast.Constant | None:
    literals = [node for call in _reshaping_calls(tree) for node in _literals(call, size)]
    return literals[0] if len(literals) == 1 else None


def _read_from(places: Mapping[str, int], names: set[str]) -> str:
    """`x.shape[0]` for an input that the line names, else -1."""
    readable = [f"{name}.shape[{axis}]" for name, axis in places.items() if name in names]
    return readable[0] if readable else _ANY


def _parse(line: str) -> ast.AST | None:
    """The line as a tree; a line that opens a block is given one. Columns stay as they are."""
    for text in (line, f"{line} pass"):
        try:
            return ast.parse(text)
        except SyntaxError:
            continue
    return None


def _reshaping_calls(tree: ast.AST) -> list[ast.Call]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in _RESHAPING]


def _literals(call: ast.Call, size: int) -> list[ast.Constant]:
    arguments = [
        item
        for argument in call.args
        for item in (argument.elts if isinstance(argument, (ast.Tuple, ast.List)) else [argument])
    ]
    return [
        item for item in arguments if isinstance(item, ast.Constant) and type(item.value) is int and item.value == size
    ]


def _replaced(line: str, literal: ast.expr, text: str) -> str:
    # Columns of the tree count bytes.
    raw = line.encode()
    start, end = literal.col_offset, literal.end_col_offset
    return (raw[:start] + text.encode() + raw[end:]).decode()
