"""Text -> expressions, conditions and domains, through Python's own parser; and a domain as the user would write it.

`parse_expr` and `format_expr` are inverses, `parse_condition` and `format_condition` too. Only the nodes listed here
are read; everything else is an error that shows the text with a caret under the place.

A rule about one dim goes into the dim, every other rule stays a relation; `declare_domain` and `format_domain` are
inverses.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

from anyshape.domain.bound import Bound, Truth, find_bound
from anyshape.domain.condition import (
    FALSE,
    TRUE,
    All,
    AnyOf,
    Compare,
    Condition,
    Not,
    conjuncts,
    dims_of,
    format_condition,
)
from anyshape.domain.dims import Dim, Domain, empty_domain, unknown_dim
from anyshape.domain.expr import CALL_SYMBOLS, ROOT, Expr, Number, Op, Ref
from anyshape.findings import DeclarationError, Finding

_SYMBOLS: dict[type[ast.AST], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}
_COMPARISONS: dict[type[ast.AST], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.GtE: ">=",
    ast.Gt: ">",
}
_INSTEAD: dict[type[ast.AST], str] = {
    ast.Div: "sizes are whole numbers: write // for division.",
    ast.Pow: "write a power as a product: n*n.",
    ast.BitAnd: "write `and` between conditions.",
    ast.BitOr: "write `or` between conditions.",
    ast.Invert: "write `not` in front of a condition.",
    ast.In: "write a range as 1 <= batch <= 64.",
}
_EXPR_WORDS = "an expression is made of dims, whole numbers, + - * // %, min(...) and max(...)."
_CONDITION_WORDS = "a condition compares expressions (< <= == != >= >), joined by and, or, not."
_DEEPEST = 200  # an expression is walked recursively, with a few frames of Python for each level
_BITS = 63
_SHOWN = 20  # characters of a text in the first line, which has 100


def parse_expr(text: str) -> Expr:
    """The expression in the text, as written: nothing is simplified."""
    reader = _Reader(" ".join(text.split()), _EXPR_WORDS)
    return reader.expr(reader.tree())


def parse_condition(text: str) -> Condition:
    """The condition in the text; a chain such as `1 <= batch <= 64` is both of its comparisons."""
    reader = _Reader(" ".join(text.split()), _CONDITION_WORDS)
    return reader.condition(reader.tree())


@dataclass(frozen=True)
class _Reader:
    """Reads the nodes of one text, and keeps the text for its errors."""

    text: str
    words: str

    def tree(self) -> ast.expr:
        """The parsed text. Raises DeclarationError for what Python cannot read, and for what has no end in sight."""
        tree = self._parsed()
        left: list[tuple[ast.AST, int]] = [(tree, 1)]
        while left:
            node, depth = left.pop()
            if depth > _DEEPEST:
                raise self._error(f"it is nested more than {_DEEPEST} deep", 0, len(self.text))
            if isinstance(node, ast.Constant) and type(node.value) is int and node.value.bit_length() > _BITS:
                raise self._at(tree, f"a number in it has more than {_BITS} bits", "sizes are integers of 64 bits.")
            left += [(child, depth + 1) for child in ast.iter_child_nodes(node)]
        return tree

    def _parsed(self) -> ast.expr:
        try:
            return ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            raise self._syntax_error(error.offset or 0) from error
        except (ValueError, RecursionError, MemoryError) as error:  # a null byte, a number or a nesting without end
            raise self._error("Python cannot read it", 0, len(self.text)) from error

    def expr(self, node: ast.expr) -> Expr:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return Number(node.value)
        if isinstance(node, ast.Name):
            return Ref(node.id)
        if isinstance(node, ast.BinOp):
            symbol = _SYMBOLS.get(type(node.op))
            if symbol is None:
                raise self._refuse(node, node.op)
            return Op(symbol, (self.expr(node.left), self.expr(node.right)))
        if isinstance(node, ast.UnaryOp):
            return self._signed(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        raise self._refuse(node, node)

    def _signed(self, node: ast.UnaryOp) -> Expr:
        if isinstance(node.op, ast.UAdd):
            return self.expr(node.operand)
        if not isinstance(node.op, ast.USub):
            raise self._refuse(node, node.op)
        if isinstance(node.operand, ast.Constant) and type(node.operand.value) is int:
            return Number(-node.operand.value)
        return Op("*", (Number(-1), self.expr(node.operand)))

    def _call(self, node: ast.Call) -> Expr:
        if not isinstance(node.func, ast.Name) or node.func.id not in CALL_SYMBOLS:
            raise self._refuse(node, node)
        is_root = node.func.id == ROOT
        if node.keywords or (len(node.args) != 1 if is_root else len(node.args) < 2):
            raise self._at(
                node, f"{node.func.id}(...) takes {'one expression' if is_root else 'two or more expressions'}"
            )
        return Op(node.func.id, tuple(self.expr(arg) for arg in node.args))

    def condition(self, node: ast.expr) -> Condition:
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.BoolOp):
            parts = tuple(self.condition(value) for value in node.values)
            return All(parts) if isinstance(node.op, ast.And) else AnyOf(parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return Not(self.condition(node.operand))
        if isinstance(node, ast.Constant) and type(node.value) is bool:
            return TRUE if node.value else FALSE
        operator = node.op if isinstance(node, (ast.BinOp, ast.UnaryOp)) else node
        if type(operator) in _INSTEAD:
            raise self._refuse(node, operator)
        raise self._at(node, "it compares nothing, so it is not a condition")

    def _comparison(self, node: ast.Compare) -> Condition:
        sides = [self.expr(side) for side in (node.left, *node.comparators)]
        parts = []
        for op, left, right in zip(node.ops, sides, sides[1:], strict=False):
            if type(op) not in _COMPARISONS:
                raise self._refuse(node, op)
            parts.append(Compare(_COMPARISONS[type(op)], left, right))
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _refuse(self, node: ast.expr, culprit: ast.AST) -> DeclarationError:
        return self._at(node, "only simple arithmetic on dims is read", _INSTEAD.get(type(culprit), self.words))

    def _at(self, node: ast.expr, reason: str, fix: str = "") -> DeclarationError:
        start, end = node.col_offset, node.end_col_offset or node.col_offset + 1
        encoded = self.text.encode()  # ast counts bytes, a caret line counts characters
        return self._error(reason, len(encoded[:start].decode()), len(encoded[:end].decode()), fix)

    def _syntax_error(self, offset: int) -> DeclarationError:
        if not self.text:
            return self._error("it is empty", 0, 0)
        if not 1 <= offset <= len(self.text):
            return self._error("it ends too early", len(self.text), len(self.text) + 1)
        fix = ""
        if "&&" in self.text or "||" in self.text:
            fix = "write `and`, `or` and `not` between conditions."
        elif re.search(r"(?<![<>=!])=(?!=)", self.text):
            fix = "write == for equality."
        return self._error("it stops making sense at the mark", offset - 1, offset, fix)

    def _error(self, reason: str, start: int, end: int, fix: str = "") -> DeclarationError:
        shown = self.text if len(self.text) <= _SHOWN else self.text[: _SHOWN - 1] + "…"  # the excerpt has all of it
        return DeclarationError(
            Finding(
                code="AS002",
                name="unreadable-expression",
                what=f"cannot read {shown!r}: {reason}.",
                excerpt=caret(self.text, start, end),
                fix=fix or self.words,
            )
        )


def caret(text: str, start: int, end: int) -> str:
    """The text, and under it a line of carets from start to end."""
    return f"{text}\n{' ' * start}{'^' * max(end - start, 1)}" if text else ""


def declare_domain(names: Sequence[str | Dim], where: Sequence[str | Condition] = ()) -> Domain:
    """The domain of these dims under these rules. Raises if a rule is unreadable or no sizes keep all of them.

    The smallest size of a dim without a declaration is 1, and a rule may lower it: `past >= 0`.
    """
    bare = Domain(tuple(Dim(name) if isinstance(name, str) else name for name in names))
    rules = [part for rule in where for part in _read(rule, bare)]
    bounds = [(find_bound(rule), rule) for rule in rules]
    dims = []
    for dim in bare.dims:
        about = [_Rule(bound, rule) for bound, rule in bounds if bound is not None and bound.name == dim.name]
        dims.append(_declared(dim, about) if about else dim)
    domain = Domain(tuple(dims), tuple(dict.fromkeys(rule for bound, rule in bounds if bound is None)))
    check_not_empty(domain)
    return domain


def format_domain(domain: Domain) -> tuple[str, ...]:
    """The rules of the domain, one text each: ranges and multiples in the order of the dims, then the relations."""
    lines = [format_condition(rule) for dim in domain.dims for rule in _rules_of(dim)]
    return (*lines, *(format_condition(relation) for relation in domain.relations))


def _read(rule: str | Condition, domain: Domain) -> tuple[Condition, ...]:
    condition = parse_condition(rule) if isinstance(rule, str) else rule
    text = " ".join(rule.split()) if isinstance(rule, str) else format_condition(rule)
    for name in dims_of(condition):
        if name not in domain.names:
            place = re.search(rf"\b{re.escape(name)}\b", text)
            excerpt = caret(text, *place.span()) if place else text
            raise DeclarationError(unknown_dim(name, domain.names, excerpt))
    return conjuncts(condition)


@dataclass(frozen=True)
class _Rule:
    """A bound and the condition that it was read from."""

    bound: Bound
    condition: Condition


def _declared(dim: Dim, rules: list[_Rule]) -> Dim:
    """The dim within all of its rules; the default of at least 1 gives way to a written lower end."""
    lows = [(rule.bound.min, str(rule.condition)) for rule in rules if rule.bound.min is not None]
    highs = [(rule.bound.max, str(rule.condition)) for rule in rules if rule.bound.max is not None]
    if dim.declared or not lows:
        lows.append((dim.min, f"{dim.name} >= {dim.min}"))
    if dim.max is not None:
        highs.append((dim.max, f"{dim.name} <= {dim.max}"))
    low, high = max(lows, key=lambda end: end[0]), min(highs, key=lambda end: end[0], default=None)
    multiple = lcm(dim.multiple, *(rule.bound.multiple or 1 for rule in rules))
    if high is not None and high[0] // multiple * multiple < max(low[0], 0):
        written = dim.declared or any(rule.bound.min is not None for rule in rules)
        raise DeclarationError(_no_size_left(dim, low[1], high[1], multiple, written))
    return Dim(dim.name, max(low[0], 0), high[0] if high else None, multiple, declared=True)


def _no_size_left(dim: Dim, low: str, high: str, multiple: int, written: bool) -> Finding:
    rules = list(dict.fromkeys([low, high] + ([f"{dim.name} % {multiple} == 0"] if multiple != 1 else [])))
    why = f"{list_quoted(rules)} cannot hold together."
    if written:
        return empty_domain(f"no size is left for dim {dim.name!r}.", why)
    why += " A size is at least 1 unless a rule says otherwise."
    return empty_domain(f"no size is left for dim {dim.name!r}.", why, f"if 0 is meant, say so: '{dim.name} >= 0'.")


def _rules_of(dim: Dim) -> list[Condition]:
    this = Ref(dim.name)
    rules: list[Condition] = []
    if dim.max is not None and dim.min == dim.max:
        rules.append(Compare("==", this, Number(dim.min)))
    elif dim.max is not None:
        rules.append(All((Compare("<=", Number(dim.min), this), Compare("<=", this, Number(dim.max)))))
    elif dim.min != 1 or (dim.declared and dim.multiple == 1):
        rules.append(Compare(">=", this, Number(dim.min)))
    if dim.multiple != 1:
        rules.append(Compare("==", this % dim.multiple, Number(0)))
    return rules


def check_not_empty(domain: Domain) -> None:
    """Raise if no sizes keep all rules, and name the rules that contradict each other."""
    if not domain.relations or domain.contains({dim.name: dim.smallest for dim in domain.dims}):
        return  # each dim has a size of its own, and no solver is needed
    from anyshape.domain.solver_questions import find_contradiction, is_empty  # only now, since it loads z3

    if is_empty(domain) is not Truth.YES:
        return
    texts = [format_condition(rule) for rule in find_contradiction(domain) or domain.conditions()]
    together = f"{list_quoted(texts)} cannot hold together." if len(texts) > 1 else f"{texts[0]!r} never holds."
    raise DeclarationError(empty_domain("no sizes keep all of the rules.", together, "drop or widen one of them."))


def list_quoted(texts: Sequence[str]) -> str:
    """`'a', 'b' and 'c'`."""
    quoted = [repr(text) for text in texts]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 2 else quoted)
