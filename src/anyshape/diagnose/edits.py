"""The edit that would free a baked-in size: the literal on the user's line -> the size that it stands for.

Only an edit that parses and changes exactly one literal is offered; otherwise none, never a guess.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from anyshape.findings import Source

_RESHAPING = ("view", "reshape", "expand", "zeros", "ones", "full", "empty", "randn", "new_zeros", "new_ones", "repeat")


def propose_edit(source: Source | None, size: int, places: Mapping[str, int]) -> str:
    """The line with `size` replaced by an input's shape, or by -1; empty when the line shows no such literal.

    `places` tells where the dim can be read: the name of an input -> its axis.
    """
    if source is None or not source.text:
        return ""
    tree = _parse(source.text)
    if tree is None:
        return ""
    literals = [node for call in _reshaping_calls(tree) for node in _literals(call, size)]
    if len(literals) != 1:
        return ""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    readable = [f"{name}.shape[{axis}]" for name, axis in places.items() if name in names]
    written = readable[0] if readable else "-1"
    return _replaced(source.text, literals[0], written)


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


def _replaced(line: str, literal: ast.Constant, text: str) -> str:
    # Columns of the tree count bytes.
    raw = line.encode()
    start, end = literal.col_offset, literal.end_col_offset
    return (raw[:start] + text.encode() + raw[end:]).decode()
