"""The expressions in a code object, as syntax: for code that has no source text (`exec`, `python -c`, a pipe).

    LOAD_NAME n, LOAD_CONST 97, BINARY_OP %, LOAD_CONST 3, COMPARE_OP ==     ->     n % 97, n % 97 == 3

The instructions of Python 3.11 to 3.14 are followed from one place at which jumps arrive to the next; what lies on the stack
there, and what an instruction makes that is not in the table, is `UNKNOWN`: nothing that can be evaluated.
"""

from __future__ import annotations

import ast
import dis
import linecache
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from types import CodeType

_WITHOUT_TEXT = ("<string>", "<stdin>")  # many codes have these names, and at most one of them its text in linecache
_IGNORED = frozenset(
    (
        "CACHE",
        "COPY_FREE_VARS",
        "EXTENDED_ARG",
        "MAKE_CELL",
        "NOP",
        "NOT_TAKEN",
        "PRECALL",
        "PUSH_NULL",
        "RESUME",
        "TO_BOOL",
    )
)
_POPS = {
    **dict.fromkeys(
        ("POP_TOP", "STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF", "LIST_APPEND", "SET_ADD"), 1
    ),
    **dict.fromkeys(("STORE_ATTR", "STORE_FAST_STORE_FAST", "MAP_ADD", "DELETE_SUBSCR"), 2),
    "STORE_SUBSCR": 3,
    "DELETE_ATTR": 1,
    "POP_ITER": 1,
}
_BINARY: dict[str, type[ast.operator]] = {
    "+": ast.Add,
    "-": ast.Sub,
    "*": ast.Mult,
    "/": ast.Div,
    "//": ast.FloorDiv,
    "%": ast.Mod,
    "**": ast.Pow,
    "&": ast.BitAnd,
    "|": ast.BitOr,
    "^": ast.BitXor,
    "<<": ast.LShift,
    ">>": ast.RShift,
    "@": ast.MatMult,
}
_NAMING = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF", "STORE_FAST_LOAD_FAST", "RETURN_VALUE")
_UNARY: dict[str, type[ast.unaryop]] = {
    "UNARY_NEGATIVE": ast.USub,
    "UNARY_POSITIVE": ast.UAdd,
    "UNARY_NOT": ast.Not,
    "UNARY_INVERT": ast.Invert,
}
_ORDERS: dict[str, type[ast.cmpop]] = {
    "<": ast.Lt,
    "<=": ast.LtE,
    "==": ast.Eq,
    "!=": ast.NotEq,
    ">": ast.Gt,
    ">=": ast.GtE,
}
_PLAIN = (int, float, complex, str, bytes, tuple, frozenset, type(None), type(...))


def has_source(code: CodeType) -> bool:
    """Whether the text of a code object can be read."""
    return code.co_filename not in _WITHOUT_TEXT and bool(linecache.getlines(code.co_filename))


@lru_cache(maxsize=1024)
def expressions_in(code: CodeType) -> tuple[ast.expr, ...]:
    """Calls, arithmetic, comparisons, items and conditions, each with the line at which it is computed."""
    reader = _Reader(code)
    for instruction in dis.get_instructions(code):
        reader.read(instruction)
    return tuple(reader.found)


@lru_cache(maxsize=1024)
def expressions_passed_on(code: CodeType) -> tuple[ast.expr, ...]:
    """Those of the expressions that are given a name, or returned."""
    at = {expression.col_offset: expression for expression in expressions_in(code)}
    instructions = [each for each in dis.get_instructions(code) if each.opname not in _IGNORED]
    return tuple(
        at[one.offset] for one, after in pairwise(instructions) if one.offset in at and after.opname in _NAMING
    )


def unknown() -> ast.expr:
    """What cannot be evaluated."""
    return ast.Yield()


class _Reader:
    """The stack as syntax, the end last, without the NULLs beside functions; `found` are the expressions so far."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.stack: list[ast.expr] = []
        self.found: list[ast.expr] = []
        self._keywords: tuple[str, ...] = ()

    def read(self, instruction: dis.Instruction) -> None:
        """Follow one instruction."""
        if instruction.is_jump_target:
            self.stack.clear()
        name, argument = instruction.opname, instruction.arg or 0
        if name in _IGNORED:
            return
        if name == "KW_NAMES":
            self._keywords = self.code.co_consts[argument]
        elif name in _POPS:
            self._pop_many(_POPS[name])
        elif name.startswith("LOAD_") and (loaded := self._load(instruction)) is not None:
            self.stack += loaded
        elif (made := self._make(name, argument, instruction)) is not None:
            self._note(made, instruction)
            self.stack.append(made)
        elif name.startswith(("POP_JUMP", "JUMP_IF")):
            condition = ast.IfExp(test=self._pop(), body=ast.Constant(None), orelse=ast.Constant(None))
            self._note(condition, instruction)
        elif not self._move(name, argument):
            self.stack.clear()

    def _load(self, instruction: dis.Instruction) -> list[ast.expr] | None:
        name, value = instruction.opname, instruction.argval
        if name in ("LOAD_CONST", "LOAD_SMALL_INT"):
            return [ast.Constant(value) if isinstance(value, _PLAIN) else unknown()]  # type: ignore[arg-type]  # of tuples too
        if name in ("LOAD_ATTR", "LOAD_METHOD"):
            return [ast.Attribute(value=self._pop(), attr=value, ctx=ast.Load())]
        if name in ("LOAD_FAST_AND_CLEAR", "LOAD_CLOSURE"):
            return [unknown()]
        if name.startswith(("LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF")):
            names = value if isinstance(value, tuple) else (value,)
            return [ast.Name(id=each, ctx=ast.Load()) for each in names]
        return None

    def _make(self, name: str, argument: int, instruction: dis.Instruction) -> ast.expr | None:
        """The expression that an instruction computes from the stack; None where it computes none of the known kinds."""
        if name == "BINARY_OP" and (symbol := instruction.argrepr.removesuffix("=")) in _BINARY:
            right, left = self._pop(), self._pop()
            return ast.BinOp(left=left, op=_BINARY[symbol](), right=right)
        if name == "BINARY_SUBSCR" or (name == "BINARY_OP" and instruction.argrepr == "[]"):
            index, value = self._pop(), self._pop()
            return ast.Subscript(value=value, slice=index, ctx=ast.Load())
        if name == "BINARY_SLICE":
            upper, lower, value = self._pop(), self._pop(), self._pop()
            return ast.Subscript(value=value, slice=ast.Slice(lower, upper), ctx=ast.Load())
        if name in _UNARY:
            return ast.UnaryOp(op=_UNARY[name](), operand=self._pop())
        if name in ("COMPARE_OP", "CONTAINS_OP", "IS_OP"):
            return self._comparison(name, argument, str(instruction.argval))
        if name in ("CALL", "CALL_KW"):
            return self._call(name, argument)
        if name.startswith(("BUILD_", "FORMAT_")) or name == "CONVERT_VALUE":
            return self._built(name, argument)
        return None

    def _comparison(self, name: str, argument: int, order: str) -> ast.expr:
        right, left = self._pop(), self._pop()
        if name == "COMPARE_OP":
            kind: type[ast.cmpop] = _ORDERS[order.removeprefix("bool(").removesuffix(")")]
        elif name == "CONTAINS_OP":
            kind = ast.NotIn if argument else ast.In
        else:
            kind = ast.IsNot if argument else ast.Is
        return ast.Compare(left=left, ops=[kind()], comparators=[right])

    def _call(self, name: str, count: int) -> ast.expr:
        keywords: tuple[str, ...] = self._keywords
        if name == "CALL_KW":
            names = self._pop()
            keywords = names.value if isinstance(names, ast.Constant) and isinstance(names.value, tuple) else ()
        self._keywords = ()
        given = self._pop_many(count)
        plain = given[: count - len(keywords)]
        named = [ast.keyword(arg=key, value=value) for key, value in zip(keywords, given[len(plain) :], strict=False)]
        return ast.Call(func=self._pop(), args=plain, keywords=named)

    def _built(self, name: str, argument: int) -> ast.expr | None:
        if name == "BUILD_TUPLE":
            return ast.Tuple(elts=self._pop_many(argument), ctx=ast.Load())
        if name == "BUILD_LIST":
            return ast.List(elts=self._pop_many(argument), ctx=ast.Load())
        if name == "BUILD_SET":
            return ast.Set(elts=self._pop_many(argument))
        if name == "BUILD_SLICE":
            return ast.Slice(*self._pop_many(argument))
        if name == "BUILD_MAP":
            items = self._pop_many(2 * argument)
            return ast.Dict(keys=list(items[::2]), values=items[1::2])
        if name == "BUILD_CONST_KEY_MAP":
            names, values = self._pop(), self._pop_many(argument)
            if isinstance(names, ast.Constant) and isinstance(names.value, tuple):
                return ast.Dict(keys=[ast.Constant(key) for key in names.value], values=values)
            return None
        if name == "BUILD_STRING":
            return ast.JoinedStr(values=[part for each in self._pop_many(argument) for part in _parts(each)])
        if name == "CONVERT_VALUE":
            return _formatted(self._pop(), (-1, ord("s"), ord("r"), ord("a"))[argument & 3], None)
        if name == "FORMAT_SIMPLE":
            value = self._pop()
            return value if isinstance(value, ast.JoinedStr) else _formatted(value, -1, None)
        if name == "FORMAT_WITH_SPEC" or (name == "FORMAT_VALUE" and argument & 4):
            spec, value = self._pop(), self._pop()
            conversion = (-1, ord("s"), ord("r"), ord("a"))[argument & 3] if name == "FORMAT_VALUE" else -1
            return _formatted(value, conversion, ast.JoinedStr(values=list(_parts(spec))))
        if name == "FORMAT_VALUE":
            return _formatted(self._pop(), (-1, ord("s"), ord("r"), ord("a"))[argument & 3], None)
        return None

    def _move(self, name: str, argument: int) -> bool:
        """Whether an instruction only moves what is on the stack, or puts unknown things there."""
        if name in ("COPY", "SWAP") and argument <= len(self.stack):
            if name == "COPY":
                self.stack.append(self.stack[-argument])
            else:
                self.stack[-1], self.stack[-argument] = self.stack[-argument], self.stack[-1]
        elif name == "UNPACK_SEQUENCE":
            self._pop()
            self.stack += [unknown() for _ in range(argument)]
        elif name == "GET_ITER":
            self._pop()
            self.stack.append(unknown())
        elif name == "FOR_ITER":
            self.stack.append(unknown())
        else:
            return False
        return True

    def _pop(self) -> ast.expr:
        return self.stack.pop() if self.stack else unknown()

    def _pop_many(self, count: int) -> list[ast.expr]:
        return [self._pop() for _ in range(count)][::-1]

    def _note(self, node: ast.expr, instruction: dis.Instruction) -> None:
        positions = instruction.positions
        node.lineno = node.end_lineno = (positions.lineno if positions else None) or 1
        node.col_offset = node.end_col_offset = instruction.offset  # one place for each instruction
        self.found.append(node)


def _formatted(value: ast.expr, conversion: int, spec: ast.expr | None) -> ast.expr:
    return ast.JoinedStr(values=[ast.FormattedValue(value=value, conversion=conversion, format_spec=spec)])


def _parts(text: ast.expr) -> Iterator[ast.expr]:
    """What a text is made of, as `JoinedStr` has it."""
    if isinstance(text, ast.JoinedStr):
        yield from text.values
    elif isinstance(text, ast.Constant) and isinstance(text.value, str):
        yield text
    else:
        yield ast.FormattedValue(value=text, conversion=-1)
