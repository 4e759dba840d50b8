"""Statements of the user's functions, and in them the expressions whose value does not come from the inputs.

    h = torch.zeros(3, self.width)        ->   the sites `3` and `self.width`
    return x.view(self.sizes) + self.pos  ->   the sites `self.sizes` and `self.pos`

Numbers inside conditions are no sites: `assert x.shape[1] == 5` says for which sizes a model is meant.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

_FREE_CALLS = ("tolist", "size", "item", "numel", "dim")
_LISTING = ("tuple", "list", "len", "int")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Site:
    """An expression on one line of a file, with its columns in bytes. `number` is the value of a literal, else None.

    `root` is the name that it begins with. `is_index`: it is a position inside of square brackets, not the end of a
    slice. `is_operand`: a text with operators in its place needs parentheses. `is_compared`: it is a side of a comparison.
    """

    file: str
    line: int
    start: int
    end: int
    text: str
    number: float | None = None
    root: str = ""
    is_index: bool = False
    is_operand: bool = False
    is_compared: bool = False

    def overlaps(self, other: Site) -> bool:
        """Whether an edit of one would change the text of the other."""
        is_same_line = (self.file, self.line) == (other.file, other.line)
        return is_same_line and self.start < other.end and other.start < self.end


@dataclass(frozen=True)
class Statement:
    """One statement, of a block only its head: its lines, its sites, and the names that it reads, writes and calls."""

    file: str
    line: int
    end_line: int
    function: tuple[str, int]
    sites: tuple[Site, ...] = ()
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    calls: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Sources:
    """All statements of some functions, by file and line."""

    statements: tuple[Statement, ...]
    by_line: dict[tuple[str, int], list[Statement]] = field(default_factory=dict, compare=False)

    def at(self, file: str, line: int) -> Sequence[Statement]:
        return self.by_line.get((file, line), ())


def read_sources(functions: Iterable[FunctionType]) -> Sources:
    """The statements of the functions, as far as their files can be read."""
    wanted: dict[str, set[tuple[str, int]]] = {}
    for function in functions:
        code = function.__code__
        wanted.setdefault(code.co_filename, set()).add((code.co_name, code.co_firstlineno))
    found: dict[Statement, None] = {}
    for file, names in wanted.items():
        lines = linecache.getlines(file)
        try:
            tree = ast.parse("".join(lines))
        except (SyntaxError, ValueError):
            continue
        reader = _Reader(file, lines, frozenset(_plain_methods(tree)))
        for node in ast.walk(tree):
            if isinstance(node, Function) and (node.name, _first_line(node)) in names:
                found.update(dict.fromkeys(reader.statements(node)))
    by_line: dict[tuple[str, int], list[Statement]] = {}
    for statement in found:
        for line in range(statement.line, statement.end_line + 1):
            by_line.setdefault((statement.file, line), []).append(statement)
    return Sources(tuple(found), by_line)


def _plain_methods(tree: ast.AST) -> Iterator[str]:
    """Methods of `self` alone that return what they make, as `init_hidden()` does: a call of one is a site."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and len(node.args.args) == 1 and not node.decorator_list:
            body = [each for each in node.body if not (isinstance(each, ast.Expr) and is_text(each.value))]
            is_plain = all(isinstance(each, ast.Assign) and _is_local(each) for each in body[:-1])
            if body and is_plain and isinstance(body[-1], ast.Return) and node.name != "forward":
                yield node.name


def is_text(node: ast.AST) -> bool:
    """Whether this is a literal text, such as a docstring."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_local(node: ast.Assign) -> bool:
    return all(isinstance(target, ast.Name) for target in node.targets)


def _first_line(node: Function) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


@dataclass(frozen=True)
class _Reader:
    file: str
    lines: Sequence[str]
    methods: frozenset[str]

    def statements(self, function: Function) -> Iterator[Statement]:
        key = (function.name, function.lineno)
        for node in function.body:
            yield from self._of(node, key)

    def _of(self, node: ast.stmt, key: tuple[str, int]) -> Iterator[Statement]:
        if isinstance(node, Function):
            yield from self.statements(node)
            return
        heads, bodies = _split(node)
        if heads and not isinstance(node, ast.Assert):
            yield self._statement(heads, key)
        for body in bodies:
            for inner in body:
                yield from self._of(inner, key)

    def _statement(self, heads: Sequence[ast.AST], key: tuple[str, int]) -> Statement:
        inside = [each for head in heads for each in ast.walk(head)]
        placed: list[Any] = [each for each in inside if hasattr(each, "lineno")]
        targets = [each for each in inside if isinstance(getattr(each, "ctx", None), ast.Store)]
        texts = [(each, chain_text(each)) for each in inside]
        written = {text for each, text in texts if text and each in targets}
        written |= {chain_text(each.value) for each in targets if isinstance(each, ast.Subscript)} - {""}
        calls = [each.func for each in inside if isinstance(each, ast.Call)]
        return Statement(
            self.file,
            min(each.lineno for each in placed),
            max(each.end_lineno for each in placed),
            key,
            tuple(site for head in heads for site in self._sites(head)),
            frozenset(text for each, text in texts if text and each not in targets),
            frozenset(written),
            frozenset(text.rpartition(".")[2] for text in map(chain_text, calls) if text),
        )

    def _sites(self, head: ast.AST) -> Iterator[Site]:
        for node, parent, is_index in _candidates(head, self.methods):
            if node.lineno != node.end_lineno:
                continue
            raw = self.lines[node.lineno - 1].encode()
            start, end = node.col_offset, node.end_col_offset or node.col_offset
            yield Site(
                self.file,
                node.lineno,
                start,
                end,
                raw[start:end].decode(),
                number=node.value if isinstance(node, ast.Constant) else None,  # type: ignore[arg-type]
                root=_root(node),
                is_index=is_index,
                is_compared=isinstance(parent, ast.Compare),
                is_operand=isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Subscript)),
            )


def _split(node: ast.stmt) -> tuple[list[ast.AST], list[list[ast.stmt]]]:
    """The parts of a statement that run as one, and the blocks under it."""
    bodies = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
    bodies += [handler.body for handler in getattr(node, "handlers", [])]
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return [node.target, node.iter], bodies
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return [each for item in node.items for each in (item.context_expr, item.optional_vars) if each], bodies
    if isinstance(node, (ast.If, ast.While)):
        return [], bodies
    return ([], bodies) if any(bodies) or isinstance(node, ast.ClassDef) else ([node], [])


def _candidates(
    node: ast.AST, methods: frozenset[str], parent: ast.AST | None = None, is_index: bool = False
) -> Iterator[tuple[ast.expr, ast.AST | None, bool]]:
    """The candidates in a statement with the node above each, without those of texts and annotations."""
    if isinstance(node, (ast.JoinedStr, ast.Lambda)):
        return
    is_candidate = isinstance(node, ast.expr) and (is_number(node) or is_held(node) or _calls_one_of(node, methods))
    if is_candidate and isinstance(node, ast.expr):
        yield node, None if is_index and isinstance(parent, ast.Subscript) else parent, is_index
    for name, value in ast.iter_fields(node):
        if (isinstance(node, ast.IfExp) and name == "test") or name == "annotation":
            continue
        below = is_index and isinstance(node, (ast.Tuple, ast.UnaryOp))
        index = below or (isinstance(node, ast.Subscript) and name == "slice")
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _candidates(child, methods, node, index and not isinstance(child, ast.Slice))


def _root(node: ast.AST) -> str:
    """The name that an expression of attributes, items and calls begins with."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Call):
        return _root(node.args[0] if node.args else node.func)
    return _root(node.value) if isinstance(node, (ast.Attribute, ast.Subscript)) else ""


def is_number(node: ast.AST) -> bool:
    """Whether this is a literal number."""
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def is_held(node: ast.AST) -> bool:
    """Whether this may be evaluated by itself: attributes, items and sizes of one name, without other arguments."""
    if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return False
    if isinstance(node, ast.Name):
        return True
    if isinstance(node, ast.Attribute):
        return is_held(node.value)
    if isinstance(node, ast.Subscript):
        return is_held(node.value) and isinstance(node.slice, ast.Constant)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in _FREE_CALLS and is_held(node.func.value) and not node.args and not node.keywords
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in _LISTING and len(node.args) == 1 and is_held(node.args[0]) and not node.keywords
    return False


def _calls_one_of(node: ast.AST, methods: frozenset[str]) -> bool:
    """Whether this is `self.method()` of one of the methods."""
    is_call = isinstance(node, ast.Call) and not node.args and not node.keywords
    function = node.func if isinstance(node, ast.Call) and is_call else None
    return isinstance(function, ast.Attribute) and function.attr in methods and isinstance(function.value, ast.Name)


def chain_text(node: ast.AST) -> str:
    """`self.pos` of a name or an attribute of names, else empty."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        above = chain_text(node.value)
        return f"{above}.{node.attr}" if above else ""
    return ""
