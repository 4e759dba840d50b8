"""torch's sympy expressions over size symbols -> our expressions and conditions over the user's dims; a program's outputs.

Floats of which every value is exact (`ceil(n / 2 - 0.5)`: integers, halves, quarters and so on) are fractions of integers,
with which quotients are compared exactly (`h / w > 1.5`). What integer arithmetic cannot express (a rounded third, square
roots, sizes that depend on values) gives None: the caller keeps the text and treats the condition as unknown, never as true.
Such a condition (`n**0.5 == n // 4`) is tried at sizes: the solver cannot decide it, and a file may be wrong where it does
not hold; torch can still compute it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from math import prod
from typing import TYPE_CHECKING, Any

from anyshape.domain import (
    FALSE,
    ROOT,
    TRUE,
    Compare,
    Condition,
    Domain,
    Expr,
    Not,
    Number,
    Op,
    all_of,
    any_of,
    simplify,
)
from anyshape.domain.solver_questions import simplify_within
from anyshape.intercept.quick_tracing import term_of
from anyshape.intercept.real_numbers import OPEN_FLOAT32
from anyshape.records.captured import OutputTensor

if TYPE_CHECKING:
    from torch.export import ExportedProgram

_COMPARISONS = {
    "Equality": "==",
    "Unequality": "!=",
    "StrictLessThan": "<",
    "LessThan": "<=",
    "StrictGreaterThan": ">",
    "GreaterThan": ">=",
}
ROUNDINGS = ("CeilToInt", "FloorToInt", "TruncToInt", "RoundToInt")
_LARGEST_DENOMINATOR = 2**20  # with it, numerators that float64 has exactly go up to 2**33: more than any size
_DIVISIONS = {"FloorDiv": "//", "CleanDiv": "//", "Mod": "%", "PythonMod": "%"}


class _Untranslatable(Exception):
    """A term that integer arithmetic over the dims cannot express."""


def expression_of(term: Any, symbols: Mapping[str, Expr]) -> Expr | None:
    """The term in the user's dims, simplified; None when it cannot be expressed."""
    try:
        return simplify(_expression(term, symbols))
    except _Untranslatable:
        return None


def condition_of(term: Any, symbols: Mapping[str, Expr]) -> Condition | None:
    """The condition in the user's dims; None when it cannot be expressed."""
    try:
        return _condition(term, symbols)
    except _Untranslatable:
        return None


def _expression(term: Any, symbols: Mapping[str, Expr]) -> Expr:
    if isinstance(term, int) or term.is_Integer:
        return Number(int(term))
    if term.is_Symbol:
        if term.name not in symbols:
            raise _Untranslatable(term.name)
        return symbols[term.name]
    name = type(term).__name__
    if name in ROUNDINGS and is_root(term.args[0]):
        return _rounded_root(name, _expression(_integer(_single(term.args[0]).args[0]), symbols))
    if name in ROUNDINGS:
        return _rounded(name, *_ratio(term.args[0], symbols))
    if term.is_Pow and term.exp.is_Integer and int(term.exp) > 0:
        base = _expression(term.base, symbols)
        return reduce(lambda product, _: product * base, range(int(term.exp) - 1), base)
    parts = [_expression(argument, symbols) for argument in term.args]
    if term.is_Add:
        return reduce(lambda left, right: left + right, parts)
    if term.is_Mul:
        return reduce(lambda left, right: left * right, parts)
    if name in _DIVISIONS:
        return Op(_DIVISIONS[name], tuple(parts))
    if name == "CeilDiv":
        return -(-parts[0] // parts[1])
    if name in ("Max", "Min"):
        return Op(name.lower(), tuple(parts))
    raise _Untranslatable(name)


def _condition(term: Any, symbols: Mapping[str, Expr]) -> Condition:
    name = type(term).__name__
    if name == "BooleanTrue":
        return TRUE
    if name == "BooleanFalse":
        return FALSE
    if name in _COMPARISONS:
        left, right = term.args
        return _compared(_COMPARISONS[name], left, right, symbols)
    if name == "And":
        return all_of(_condition(part, symbols) for part in term.args)
    if name == "Or":
        return any_of(_condition(part, symbols) for part in term.args)
    if name == "Not":
        return Not(_condition(term.args[0], symbols))
    raise _Untranslatable(name)


def _compared(operator: str, left: Any, right: Any, symbols: Mapping[str, Expr]) -> Condition:
    """Both sides without their fraction bars, one of which may have a size below it: `h / w > 1.5` is `2*h > 3*w`.

    A quotient of integers, rounded to float64, is on the same side of such a fraction as before: the two are equal or differ
    by more than rounding does, since sizes are far below 2**32. Two rounded quotients may be equal though they were not.
    """
    if _is_quotient(left) and _is_quotient(right):
        raise _Untranslatable("two quotients")
    (above_left, below_left), (above_right, below_right) = _ratio(left, symbols), _ratio(right, symbols)
    if below_left == below_right:
        return Compare(operator, above_left, above_right)
    return Compare(operator, above_left * below_right, above_right * below_left)


def _is_quotient(term: Any) -> bool:
    """Whether a term is one integer divided by another that is not negative, and no power of two."""
    if type(term).__name__ not in ("FloatTrueDiv", "IntTrueDiv"):
        return False
    above, below = map(_integer, term.args)
    is_exact = below.is_Integer and int(below).bit_count() == 1
    return bool(above.is_integer and below.is_integer and below.is_nonnegative) and not is_exact


def _integer(term: Any) -> Any:
    """What a term was before it was made a float."""
    while type(term).__name__ in ("ToFloat", OPEN_FLOAT32.term_name):
        term = term.args[0]
    return term


def _single(term: Any) -> Any:
    """The number of which a term is the nearest float32."""
    return term.args[0] if type(term).__name__ == OPEN_FLOAT32.term_name else term


def is_root(term: Any) -> bool:
    """Whether a term is the root of an integer; `size_steps` ends ranges where its rounded value might be another one."""
    root = _single(term)
    return type(root).__name__ == "OpaqueUnaryFn_sqrt" and bool(_integer(root.args[0]).is_integer)


def _rounded_root(name: str, of: Expr) -> Expr:
    """The root, rounded down; for CeilToInt one more where it is not a whole number."""
    root = Op(ROOT, (of,))
    return root + Op("min", (Number(1), of - root * root)) if name == "CeilToInt" else root


def _ratio(term: Any, symbols: Mapping[str, Expr]) -> tuple[Expr, Expr]:
    """What is above and below the fraction bar of a term."""
    if _is_quotient(term):
        above, below = (_expression(_integer(part), symbols) for part in term.args)
        return above, below
    above, divisor = _fraction(term, symbols)
    return above, Number(divisor)


def _fraction(term: Any, symbols: Mapping[str, Expr]) -> tuple[Expr, int]:
    """Numerator and denominator of a term whose value float64 has exactly: the denominator is a power of two."""
    name = type(term).__name__
    if getattr(term, "is_Float", False) or getattr(term, "is_Rational", False):
        numerator, denominator = float(term).as_integer_ratio()
        return Number(numerator), _checked(denominator)
    if name == "ToFloat":
        return _expression(term.args[0], symbols), 1
    if name == OPEN_FLOAT32.term_name and _integer(term).is_integer:  # exact: `size_steps` ends ranges at 2**24
        return _expression(_integer(term), symbols), 1
    if name in ("FloatTrueDiv", "IntTrueDiv"):
        above, below = _fraction(term.args[0], symbols)
        divisor, under = _fraction(term.args[1], symbols)
        if not isinstance(divisor, Number) or divisor.value <= 0 or divisor.value.bit_count() != 1:
            raise _Untranslatable(name)
        return above * under, _checked(below * divisor.value)
    if getattr(term, "is_Add", False) and not term.is_integer:
        parts = [_fraction(argument, symbols) for argument in term.args]
        below = max(divisor for _, divisor in parts)
        scaled = [above * (below // divisor) for above, divisor in parts]
        return reduce(lambda left, right: left + right, scaled), below
    if getattr(term, "is_Mul", False) and not term.is_integer:
        parts = [_fraction(argument, symbols) for argument in term.args]
        if sum(not isinstance(above, Number) for above, _ in parts) > 1:  # too large for float64, perhaps
            raise _Untranslatable(name)
        factors, divisors = zip(*parts, strict=True)
        return reduce(lambda left, right: left * right, factors), _checked(prod(divisors))
    return _expression(term, symbols), 1


def _checked(denominator: int) -> int:
    if denominator.bit_count() != 1 or denominator > _LARGEST_DENOMINATOR:
        raise _Untranslatable(str(denominator))
    return denominator


def _rounded(name: str, above: Expr, below: Expr) -> Expr:
    """CeilToInt, FloorToInt, TruncToInt or RoundToInt of a fraction.

    A quotient of integers below 2**53, rounded to float64, is on the same side of every integer as before.
    """
    if below == Number(1):
        return above
    if name == "RoundToInt":  # a half goes to the even neighbour: to the lower one where the upper one is odd
        upper, rest = (above * 2 + below) // (below * 2), (above * 2 + below) % (below * 2)
        return upper - Op("max", (Number(1) - rest, Number(0))) * (upper % 2)
    floor, ceiling = above // below, -(-above // below)
    if name == "TruncToInt":  # towards zero: of the two, the ceiling where it is not positive
        return Op("max", (floor, Op("min", (ceiling, Number(0)))))
    return floor if name == "FloorToInt" else ceiling


def outputs_of(
    program: ExportedProgram, paths: Sequence[str], symbols: Mapping[str, Expr], domain: Domain
) -> tuple[OutputTensor, ...]:
    """The outputs of the program, path by path; axes have the shortest expressions that the domain allows."""
    import torch

    given = next(node for node in reversed(program.graph.nodes) if node.op == "output").args[0]
    asked = set(map(str, program.graph_signature.user_outputs))
    values = [node.meta["val"] for node in given if getattr(node, "name", None) in asked]
    outputs = []
    for path, value in zip(paths, values[-len(paths) :] if paths else (), strict=True):
        if isinstance(value, torch.Tensor):
            axes = tuple(_size(size, symbols, domain) for size in value.shape)
            outputs.append(OutputTensor(path, str(value.dtype).removeprefix("torch."), axes))
        else:
            kind = {torch.SymInt: "int64", torch.SymBool: "bool", int: "int64", bool: "bool"}
            outputs.append(OutputTensor(path, kind.get(type(value), "float32"), ()))
    return tuple(outputs)


def _size(size: Any, symbols: Mapping[str, Expr], domain: Domain) -> Expr | None:
    if isinstance(size, int):
        return Number(size)
    found = expression_of(term_of(size), symbols)
    return None if found is None else simplify_within(found, domain)
