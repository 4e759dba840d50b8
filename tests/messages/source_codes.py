"""Which codes the source can emit, and under which names: read from its syntax, nothing is run.

A finding whose code cannot be read where it is made would have no page and nobody would notice: that is an error here.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

_CODE = re.compile(r"AS\d{3}")
_NAME = re.compile(r"[a-z]+(-[a-z]+)*")
_COPIED = re.compile(r"\w+\.(code|name)")  # of another finding, in other words


def names_by_code(package: Path) -> Mapping[str, set[str]]:
    """Every code that is given to a Finding, with its names. Raises ValueError where a code cannot be read."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for file in sorted(package.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for code, name in (*_table(tree), *_findings(tree)):
            found[code].add(name)
    return found


def codes_spoken_of(package: Path) -> set[str]:
    """Every code in any text of the source: messages of graphs, docstrings, fixes."""
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in package.rglob("*.py"))
    texts = (node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {code for text in texts if isinstance(text, str) for code in _CODE.findall(text)}


def _findings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    named = _named_texts(tree)
    has_table = any(_table(tree))
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding"):
            continue
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        if "code" not in given or _COPIED.fullmatch(ast.unparse(given["code"])):
            continue
        if has_table and isinstance(given["code"], ast.Name) and given["code"].id not in named:
            continue  # unpacked from the table
        yield from zip(_choices(given["code"], named), _choices(given["name"], named), strict=True)


def _named_texts(tree: ast.Module) -> dict[str, str]:
    """`NAME = "AS122"`, at the top of a module."""
    return {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }


def _choices(value: ast.expr, named: Mapping[str, str]) -> list[str]:
    """`"AS306"`, or both of `"AS307" if crashed else "AS306"`, or what a name stands for."""
    if isinstance(value, ast.IfExp):
        return [*_choices(value.body, named), *_choices(value.orelse, named)]
    if isinstance(value, ast.Name) and value.id in named:
        return [named[value.id]]
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return [value.value]
    raise ValueError(f"the code or name of a finding cannot be read from the source: {ast.unparse(value)}")


def _table(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Pairs of code and name, as a table of them has."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple) and all(isinstance(each, ast.Constant) for each in node.elts):
            values = [each.value for each in node.elts if isinstance(each, ast.Constant)]
            if len(values) == 2 and _CODE.fullmatch(str(values[0])) and _NAME.fullmatch(str(values[1])):
                yield str(values[0]), str(values[1])
