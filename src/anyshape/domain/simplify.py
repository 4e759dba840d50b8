"""The canonical form of an expression: a sum of products of atoms, like terms collected.

Atoms are dims and the `//`, `%`, `min`, `max` and `isqrt` that do not go away. The simplified expression has the value of the
original wherever the original has one; a division by zero may vanish together with the term that it stands in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from math import gcd
from typing import cast

from anyshape.domain.condition import Compare, Condition, dims_of, holds, substitute
from anyshape.domain.expr import ROOT, Expr, Number, Op, Ref, apply
from anyshape.domain.polynomial import Monomial, Polynomial


def simplify(expr: Expr) -> Expr:
    """`past + seq` for `seq + past`, `seq` for `2*seq - seq`, `2*n` for `(4*n)//2`, `0` for `(2*n) % 2`."""
    return polynomial_of(expr).to_expr()


def polynomial_of(expr: Expr) -> Polynomial:
    """The expression as a polynomial over atoms; `to_expr` is the way back."""
    if isinstance(expr, Number):
        return Polynomial.constant(expr.value)
    if isinstance(expr, Ref):
        return Polynomial.atom(expr)
    if not isinstance(expr, Op):
        raise TypeError(f"not an expression: {expr!r}")
    args = [polynomial_of(arg) for arg in expr.args]
    if expr.symbol in ("min", "max"):
        return _extreme(expr.symbol, args)
    if expr.symbol == ROOT:
        return _root(args[0])
    left, right = args
    if expr.symbol == "+":
        return left + right
    if expr.symbol == "-":
        return left - right
    if expr.symbol == "*":
        return left * right
    return _quotient(left, right) if expr.symbol == "//" else _remainder(left, right)


def without_remainders(expr: Expr) -> Expr:
    """The same value with `a - m*(a//m)` for each `a % m`: a longer form, in which `p + (m - p % m) % m`, which is how code
    pads to a multiple of m, is divided by m without a rest."""
    if not isinstance(expr, Op):
        return expr
    args = tuple(map(without_remainders, expr.args))
    if expr.symbol == "%":
        return args[0] - args[1] * (args[0] // args[1])
    return Op(expr.symbol, args)


def in_steps(expr: Expr, steps: Mapping[str, int]) -> Expr:
    """Each dim counted in its steps, which may divide evenly: (32*k + 4)//8  ->  4*k  ->  h//8."""
    if not steps:
        return expr
    counted = polynomial_of(substitute(expr, {name: step * Ref(name) for name, step in steps.items()}))
    if any(not isinstance(atom, Ref) for monomial in counted.terms for atom in monomial):
        return expr
    total: Expr = Number(0)
    for monomial, factor in counted.terms.items():
        product = _in_sizes(monomial, factor, steps)
        if _is_division(product) and sum(isinstance(atom, Ref) and atom.name in steps for atom in monomial) > 1:
            return expr  # h//4*(w//4) says more than h*(w//16)
        total = total + product
    return simplify(total)


def _is_division(expr: Expr) -> bool:
    return isinstance(expr, Op) and (expr.symbol == "//" or any(map(_is_division, expr.args)))


def _in_sizes(monomial: Monomial, factor: int, steps: Mapping[str, int]) -> Expr:
    """factor*k with h == step*k  ->  factor/s * (h//(step/s)), s what factor and step share."""
    product: Expr = Number(1)
    for atom in monomial:
        assert isinstance(atom, Ref)
        step = steps.get(atom.name, 1)
        shared = gcd(factor, step)
        factor //= shared
        product = product * (atom if step == shared else Op("//", (atom, Number(step // shared))))
    return Number(factor) * product


def is_identity(condition: Condition) -> bool:
    """Whether both sides of a comparison differ by a number for which it holds, wherever they have values."""
    if not isinstance(condition, Compare):
        return False
    difference = polynomial_of(without_remainders(condition.left)) - polynomial_of(without_remainders(condition.right))
    number = difference.as_constant()
    return number is not None and holds(Compare(condition.op, Number(number), Number(0)), {})


def open_divisors(condition: Condition | Expr) -> list[Expr]:
    """The divisors in a comparison that may be 0, which numbers other than 0 may not; of a product each factor."""
    if isinstance(condition, Compare):
        return [*open_divisors(condition.left), *open_divisors(condition.right)]
    if not isinstance(condition, Op):
        return []
    inner = [divisor for arg in condition.args for divisor in open_divisors(arg)]
    own = _factors(condition.args[1]) if condition.symbol in ("//", "%") else []
    return [*inner, *(factor for factor in own if not (isinstance(factor, Number) and factor.value))]


def equal_factors(condition: Condition) -> list[Condition]:
    """Comparisons of factors with the same dims, from which together an equality of products follows; none for another
    condition: `3*(h + h % 2)*w == 3*(2*((h + 1)//2))*w` follows from `3 == 3`, `h + h % 2 == 2*((h + 1)//2)` and `w == w`."""
    if not isinstance(condition, Compare) or condition.op != "==":
        return []
    sides = [[(_dims(factor), factor) for factor in _factors(side)] for side in (condition.left, condition.right)]
    groups = dict.fromkeys(dims for side in sides for dims, _ in side)
    if sum(map(bool, groups)) < 2:  # with dims; the numbers are a group as well
        return []
    products = ([_product(factor for dims, factor in side if dims == group) for side in sides] for group in groups)
    return [Compare("==", left, right) for left, right in products]


def _dims(expr: Expr) -> frozenset[str]:
    return frozenset(dims_of(Compare("==", expr, Number(0))))


def _factors(expr: Expr) -> list[Expr]:
    if isinstance(expr, Op) and expr.symbol == "*":
        return [factor for arg in expr.args for factor in _factors(arg)]
    return [expr]


def _product(factors: Iterable[Expr]) -> Expr:
    return reduce(lambda one, other: one * other, factors, cast(Expr, Number(1)))


def _root(of: Polynomial) -> Polynomial:
    number = of.as_constant()
    return Polynomial.atom(Op(ROOT, (of.to_expr(),))) if number is None else Polynomial.constant(apply(ROOT, [number]))


def _quotient(left: Polynomial, right: Polynomial) -> Polynomial:
    if not right.terms:
        return _opaque("//", left, right)
    left, right, _ = _reduced(left, right)
    divisor = right.as_constant()
    if divisor is None:
        exact = left.divided_by(right)
        if exact is not None:
            return exact
        whole, rest = left.split_by_term(right)  # (m*q + r)//m  ->  q + r//m
        return whole + _quotient(rest, right) if whole.terms else _opaque("//", left, right)
    return _quotient_by_number(left, divisor)


def _quotient_by_number(left: Polynomial, divisor: int) -> Polynomial:
    """(divisor*q + r)//divisor  ->  q + r//divisor, r reduced by what its terms share with the divisor."""
    whole, rest = left.split_by(divisor)
    constant = rest.coefficient(())
    varying = rest - Polynomial.constant(constant)
    if _is_below(rest, divisor):
        return whole
    shared = gcd(divisor, *varying.terms.values())
    rest = varying.scaled_down(shared) + Polynomial.constant(constant // shared)
    divisor //= shared
    if divisor == 1:
        return whole + rest
    inner = _only_quotient(rest)
    if inner is not None:  # (x//a + k)//b  ->  (x + k*a)//(a*b)
        dividend, step = inner
        dividend = dividend + Polynomial.constant(rest.coefficient(()) * step)
        return whole + _quotient_by_number(dividend, divisor * step)
    return whole + _opaque("//", rest, Polynomial.constant(divisor))


def _only_quotient(poly: Polynomial) -> tuple[Polynomial, int] | None:
    """x and a, if the polynomial is x//a + k for a positive number a."""
    varying = [(monomial, factor) for monomial, factor in poly.terms.items() if monomial]
    if len(varying) != 1 or varying[0][1] != 1 or len(varying[0][0]) != 1:
        return None
    atom = varying[0][0][0]
    if not isinstance(atom, Op) or atom.symbol != "//":
        return None
    dividend, divisor = atom.args
    if not isinstance(divisor, Number) or divisor.value <= 0:
        return None
    return polynomial_of(dividend), divisor.value


def _remainder(left: Polynomial, right: Polynomial) -> Polynomial:
    if not right.terms:
        return _opaque("%", left, right)
    left, right, shared = _reduced(left, right)
    divisor = right.as_constant()
    if divisor is None:
        exact = left.divided_by(right)
        return Polynomial.constant(0) if exact is not None else shared * _opaque("%", left, right)
    return shared * _remainder_by_number(left, divisor)


def _remainder_by_number(left: Polynomial, divisor: int) -> Polynomial:
    """(divisor*q + r) % divisor  ->  r % divisor, and a remainder by a multiple of the divisor is seen through."""
    opened = _without_inner_remainders(left, divisor)
    rest = opened.split_by(divisor)[1]
    constant = rest.coefficient(())
    varying = rest - Polynomial.constant(constant)
    if _is_below(rest, divisor):
        return rest
    shared = gcd(divisor, *varying.terms.values())
    kept, added = divmod(constant, shared)
    inner = varying.scaled_down(shared) + Polynomial.constant(kept)
    if divisor == shared:
        return Polynomial.constant(added)
    if shared == 1:
        return _opaque("%", inner, Polynomial.constant(divisor))
    outer = _remainder_by_number(inner, divisor // shared)  # the smaller divisor may see through more
    return Polynomial.constant(shared) * outer + Polynomial.constant(added)


def _is_below(rest: Polynomial, divisor: int) -> bool:
    """Whether the values, none of whose coefficients is negative, always lie from 0 to below the divisor."""
    largest = rest.coefficient(())
    for monomial, factor in rest.terms.items():
        if monomial:
            modulus = _modulus(monomial[0]) if len(monomial) == 1 else None
            if modulus is None or modulus <= 0:
                return False
            largest += factor * (modulus - 1)
    return largest < divisor


def _modulus(atom: Expr) -> int | None:
    if isinstance(atom, Op) and atom.symbol == "%" and isinstance(atom.args[1], Number):
        return atom.args[1].value
    return None


def _without_inner_remainders(poly: Polynomial, divisor: int) -> Polynomial:
    result = Polynomial.constant(0)
    for monomial, factor in poly.terms.items():
        product = Polynomial.constant(factor)
        for atom in monomial:
            product = product * _seen_through(atom, divisor)
        result = result + product
    return result


def _seen_through(atom: Expr, divisor: int) -> Polynomial:
    modulus = _modulus(atom)
    if isinstance(atom, Op) and modulus and modulus % divisor == 0:
        return _without_inner_remainders(polynomial_of(atom.args[0]), divisor)
    return Polynomial.atom(atom)


def _reduced(left: Polynomial, right: Polynomial) -> tuple[Polynomial, Polynomial, Polynomial]:
    """Both without the factor that they share, and the factor; it is not 0 where the division has a value.

    Its sign makes the divisor's leading coefficient positive, so that `x//(-y)` and `(-x)//y` are the same.
    """
    number, atoms = right.common_factor(left)
    sign = -1 if right.leading()[1] < 0 else 1
    shared = Polynomial({atoms: sign * number})
    return left.without(atoms, sign * number), right.without(atoms, sign * number), shared


def _extreme(symbol: str, args: list[Polynomial]) -> Polynomial:
    """min or max, flat, sorted, without the arguments that another one always beats."""
    sign = 1 if symbol == "min" else -1
    kept: list[Polynomial] = []
    for candidate in (inner for arg in args for inner in _opened(symbol, arg)):
        gaps = [(other - candidate).as_constant() for other in kept]
        if any(gap is not None and sign * gap <= 0 for gap in gaps):
            continue
        kept = [other for other, gap in zip(kept, gaps, strict=True) if gap is None]
        kept.append(candidate)
    if len(kept) == 1:
        return kept[0]
    exprs = sorted((poly.to_expr() for poly in kept), key=lambda expr: (isinstance(expr, Number), str(expr)))
    return Polynomial.atom(Op(symbol, tuple(exprs)))


def _opened(symbol: str, poly: Polynomial) -> list[Polynomial]:
    expr = poly.to_expr()
    if isinstance(expr, Op) and expr.symbol == symbol:
        return [polynomial_of(arg) for arg in expr.args]
    return [poly]


def _opaque(symbol: str, left: Polynomial, right: Polynomial) -> Polynomial:
    return Polynomial.atom(Op(symbol, (left.to_expr(), right.to_expr())))
