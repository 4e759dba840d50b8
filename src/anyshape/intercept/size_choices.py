"""One expression for a number that a condition on remainders of sizes chooses.

    if height % 2 == 0:  pad = 1      ->     pad = 1 + 2*((height + 1)//2) - height
    else:                pad = 2

A remainder has few values, so that both numbers are computed at each of them. Where the chosen number is one of the two
everywhere, or grows evenly with the remainder, it is an expression of sizes, and nothing needs to be decided. What is added up
to the next multiple is written as the multiple less the size: in a sum with that size only the multiple is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from math import prod
from typing import Any

from torch import SymBool, SymInt

_MOST_CASES = 256
_NUMBERS = (int, SymInt)
_PLAIN = (bool, int, float, str, type(None))


class NotJoined(Exception):
    """There is no one expression for what a condition chooses."""


def choose(condition: Any, one: Any, other: Any) -> Any:
    """`one` where the condition holds, `other` elsewhere, as one value. Raises NotJoined."""
    if one is other or (type(one) is type(other) and type(one) in _PLAIN and one == other):
        return one
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return tuple(choose(condition, *pair) for pair in zip(one, other, strict=True))
    if type(one) not in _NUMBERS or type(other) not in _NUMBERS:
        raise NotJoined
    same = _where_they_differ(condition, one, other)
    return _Choice(condition, one, other).joined() if same is None else same


def _where_they_differ(condition: SymBool, one: Any, other: Any) -> Any | None:
    """The one number that is right on both sides: `new` of `if new != n`, as both are equal where it does not hold."""
    import sympy

    asked = condition.node.expr
    terms = {each.node.expr if isinstance(each, SymInt) else sympy.Integer(each) for each in (one, other)}
    for relation, joint, number in ((sympy.Ne, sympy.Or, one), (sympy.Eq, sympy.And, other)):
        parts = asked.args if isinstance(asked, joint) else (asked,)
        if any(isinstance(part, relation) and set(part.args) == terms for part in parts):
            return number
    return None


def add_up(number: Any, multiple: int) -> Any:
    """How much is missing to the next multiple: (-number) % multiple."""
    return multiple * ((number + (multiple - 1)) // multiple) - number


def missing_to_multiple(number: SymInt, multiple: Any) -> Any | None:
    """(number) % multiple, where that is what is missing to a multiple: `(4 - n % 4) % 4`; None elsewhere."""
    if type(multiple) is not int or multiple < 2:
        return None
    term = number.node.expr
    if not term.is_Add and not term.is_Mul:
        return None
    remainders = [each for each in term.atoms(*_remainder_classes()) if each.args[1] == multiple]
    if len(remainders) == 1 and (term + remainders[0]).is_Integer and int(term + remainders[0]) % multiple == 0:
        with suppress(NotJoined):
            return add_up(_size(number.node.shape_env, remainders[0].args[0]), multiple)
    return None


def reaches(size: Any, stop: Any) -> bool:
    """Whether an axis of this size surely has as many elements as `stop`: a remainder of `stop` decides by how much more."""
    if not isinstance(size, SymInt) or not isinstance(stop, SymInt):
        return False
    try:
        more = _Terms([size.node.expr - stop.node.expr])
        return all(more.at(case)[0].is_nonnegative for case in more.cases())
    except NotJoined:
        return False


def _remainder_classes() -> tuple[type, ...]:
    from torch.utils._sympy.functions import Mod, PythonMod

    return Mod, PythonMod


def _divisions() -> tuple[type, ...]:
    from torch.utils._sympy.functions import CleanDiv, FloorDiv

    return (*_remainder_classes(), CleanDiv, FloorDiv)


def _size(environment: Any, term: Any) -> Any:
    """The open size of this term; an int where it is a number. Raises NotJoined for functions that torch cannot rebuild."""
    import sympy
    from torch.fx.experimental.sym_node import SymNode

    known = (sympy.Add, sympy.Mul, sympy.Symbol, sympy.Integer, *_divisions())
    if not all(isinstance(each, known) for each in sympy.preorder_traversal(term)):
        raise NotJoined
    return int(term) if term.is_Integer else SymInt(SymNode(term, environment, int, None))


class _Terms:
    """Terms of sizes, written with a symbol for the remainder of each size that they divide.

    Of a size n and a number m the remainder is r: n % m is r, and (n + 3)//m is (n - r)/m + (r + 3)//m.
    """

    def __init__(self, terms: Sequence[Any]) -> None:
        self.remainders: dict[tuple[Any, int], Any] = {}
        replaced = self._replacements(terms)
        self.terms = [each.xreplace(replaced) for each in terms]
        if not replaced or prod(multiple for _, multiple in self.remainders) > _MOST_CASES:
            raise NotJoined

    def _replacements(self, terms: Sequence[Any]) -> dict[Any, Any]:
        """Divisions in the terms, written with remainders. Raises NotJoined where a divisor is no number."""
        remainders = _remainder_classes()
        divided = {each for term in terms for each in term.atoms(*_divisions())}
        if any(not each.args[1].is_Integer or int(each.args[1]) < 1 for each in divided):
            raise NotJoined  # at other sizes the divisor may be 0
        parted = {each: each.args[0].as_coeff_Add()[::-1] for each in sorted(divided, key=str)}
        sizes = {size for size, _ in parted.values()}
        found = {}
        for each, (size, added) in parted.items():
            multiple = int(each.args[1])
            if isinstance(each, remainders) and not added and not size.has(*remainders):
                found[each] = self._remainder(size, multiple)
            elif not isinstance(each, remainders) and each not in sizes and not size.has(*remainders):
                rest = self._remainder(size, multiple)
                found[each] = (size - rest) / multiple + type(each)(rest + added, each.args[1])
        return found

    def _remainder(self, size: Any, multiple: int) -> Any:
        import sympy

        return self.remainders.setdefault((size, multiple), sympy.Dummy("rest", integer=True, nonnegative=True))

    def cases(self) -> Iterator[dict[Any, Any]]:
        """All values of all remainders."""
        import sympy

        for values in product(*(range(multiple) for _, multiple in self.remainders)):
            yield dict(zip(self.remainders.values(), map(sympy.Integer, values), strict=True))

    def at(self, case: Mapping[Any, Any]) -> list[Any]:
        """The terms with these remainders."""
        return [each.xreplace(case) for each in self.terms]


class _Choice:
    """A condition with two numbers, and the chosen one for all remainders."""

    def __init__(self, condition: SymBool, one: Any, other: Any) -> None:
        import sympy

        self._environment = condition.node.shape_env
        self._numbers = (one, other)
        given = (condition, one, other)
        self._terms = _Terms([each.node.expr if hasattr(each, "node") else sympy.Integer(each) for each in given])
        self._cases = list(self._terms.cases())
        self._values = [self._terms.at(case) for case in self._cases]
        if any(truth not in (sympy.true, sympy.false) for truth, _, _ in self._values):
            raise NotJoined
        self._chosen = [one if truth == sympy.true else other for truth, one, other in self._values]

    def joined(self) -> Any:
        """The chosen number. A remainder as such is written as what is missing to a multiple, where that is the same."""
        found, number = self._find_same(), None
        if found is not None and not self._terms.terms[1 + found].has(*self._terms.remainders.values()):
            return self._numbers[found]
        for (size, multiple), rest in self._terms.remainders.items():
            remains = [int(case[rest]) for case in self._cases]
            number = self._even_growth(size, multiple, remains) if number is None else number
        if number is None and found is None:
            raise NotJoined
        return self._numbers[found or 0] if number is None else number

    def _find_same(self) -> int | None:
        """The place of that number which is the chosen one in all cases."""
        for place in range(2):
            if all(
                (each[1 + place] - chosen).expand() == 0
                for each, chosen in zip(self._values, self._chosen, strict=True)
            ):
                return place
        return None

    def _even_growth(self, size: Any, multiple: int, remains: Sequence[int]) -> Any | None:
        """The number at a remainder of 0, and a multiple of the remainder, or of what is missing to the next multiple."""
        added = [(value - self._chosen[0]).expand() for value in self._chosen]
        if multiple < 2 or not all(each.is_Integer for each in added):
            return None
        first, last = (int(added[remains.index(at)]) for at in (1, multiple - 1))
        is_up = last > 0 or multiple > 2
        start, whole = _size(self._environment, self._chosen[0]), _size(self._environment, size)
        if is_up and all(int(each) == last * (-rest % multiple) for each, rest in zip(added, remains, strict=True)):
            return start + last * add_up(whole, multiple)
        if all(int(each) == first * rest for each, rest in zip(added, remains, strict=True)):
            return start + first * (whole - multiple * (whole // multiple))
        return None
