"""Rounded quotients of sizes are whole quotients while a module is captured: `math.ceil(n / 4 + 1)` is (n + 3)//4 + 1.

torch keeps the quotient as a float inside of the term, which no rule of its own simplifies (seen to 2.13). Where sizes of one
layer are rounded from those of the layer before, terms double with each layer, until nothing about them can be decided.

A quotient of integers below 2**51, rounded to float64, and its sum with an integer are on the same side of every integer
as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sympy
from torch.utils._sympy.functions import CeilToInt, FloorDiv, FloorToInt, TruncToInt

from anyshape.intercept.patching import Patch, patched

_LARGEST_DENOMINATOR = 1 << 10
_LARGEST_NUMERATOR = 1 << 20


@contextmanager
def quotients_rounded_as_integers() -> Iterator[None]:
    """Within this, torch's terms for floor, ceil and trunc of such a sum are terms of integers."""
    with patched([_rounding(kind) for kind in (CeilToInt, FloorToInt, TruncToInt)]):
        yield


def _rounding(kind: Any) -> Patch:
    own: Callable[[Any, Any], Any] = vars(kind)["eval"].__func__

    def rounded(cls: Any, number: Any) -> Any:
        found = own(cls, number)
        return found if found is not None else _rounded(kind, number)

    return kind, "eval", classmethod(rounded)


def _rounded(kind: Any, number: Any) -> Any:
    """The whole number, as a term of integers; None where it has no such form."""
    shift, fraction = sympy.Integer(0), None
    for part in sympy.Add.make_args(number):
        over, by = _fraction(part)
        if by == 1:
            shift += over
        elif over is None or fraction is not None:
            return None
        else:
            fraction = over, by
    if fraction is None:
        return shift
    above, below = fraction
    if kind is TruncToInt and not number.is_nonnegative and not (above + shift * below).is_nonnegative:
        return None
    return FloorDiv(above + below - 1 if kind is CeilToInt else above, below) + shift


def _fraction(term: Any) -> tuple[Any, Any]:
    """Numerator and denominator as integers, the denominator a positive number; None twice where a term is no such fraction."""
    if (whole := _whole(term)) is not None:
        return whole, 1
    if type(term).__name__ in ("IntTrueDiv", "FloatTrueDiv"):
        over, by = map(_whole, term.args)
        if over is not None and over == by:
            return sympy.Integer(1), 1
        return (over, by) if over is not None and by is not None and by.is_Integer and by > 0 else (None, None)
    factor, others = term.as_coeff_Mul()  # n * 0.75 is exact
    whole = _whole(others) if factor.is_Float else None
    if whole is None:
        return None, None
    over, by = float(factor).as_integer_ratio()
    is_small = by <= _LARGEST_DENOMINATOR and abs(over) <= _LARGEST_NUMERATOR
    return (over * whole, sympy.Integer(by)) if is_small else (None, None)


def _whole(term: Any) -> Any:
    """The integer that a term is as a float or an integer; None for others."""
    if term.is_integer:
        return term
    if type(term).__name__ == "ToFloat":
        return term.args[0]
    return sympy.Integer(int(term)) if term.is_Float and float(term).is_integer() else None
