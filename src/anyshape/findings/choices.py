"""Options that take one of a few words, or a number: anything else is a usage error that names what is taken, and what was
perhaps meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

from anyshape.findings.errors import UsageError
from anyshape.findings.finding import Finding, Severity


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise UsageError (AS060) unless `value` is one of `choices`; `name` is the option as the user writes it."""
    if isinstance(value, str) and value in choices:
        return
    near = nearest_choice(value, choices)
    raise UsageError(
        Finding(
            code="AS060",
            name="unknown-choice",
            what=f"{name} cannot be {value!r}.",
            why=f"the choices are {', '.join(map(repr, choices))}.",
            fix=f"did you mean {near!r}?" if near else "",
        )
    )


def check_number(name: str, value: Any, example: float, *, whole: bool = False) -> None:
    """Raise UsageError (AS066) unless `value` is a number that is not negative; `whole`: an integer of any sign."""
    kind = Integral if whole else Real
    if isinstance(value, kind) and not isinstance(value, bool) and (whole or float(value) >= 0):
        return
    raise UsageError(
        Finding(
            code="AS066",
            name="not-a-number",
            what=f"{name} cannot be {value!r}.",
            why="it is a whole number." if whole else "it is a number, 0 or more.",
            fix=f"{name}={example}",
        )
    )


def check_numbers(seed: int, **options: float | None) -> None:
    """Raise UsageError (AS066) unless the seed is whole, and every option that is given a number that is not negative."""
    check_number("seed", seed, 0, whole=True)
    for name, value in options.items():
        if value is not None:
            check_number(name, value, 1e-3 if name in ("rtol", "atol") else 60)


def nothing_to_force(why: str) -> Finding:
    """AS061, a note: `force` writes files whose promise is broken, and there is no such file."""
    return Finding(
        code="AS061",
        name="nothing-to-force",
        severity=Severity.NOTE,
        what="force had nothing to do.",
        why=f"it writes a file that breaks its promise; {why}",
    )


def nothing_to_enforce(bounds: str) -> Finding:
    """AS067, a note: no input has bounds of values that the graph could check. `bounds` is an example of some."""
    return Finding(
        code="AS067",
        name="nothing-to-enforce",
        severity=Severity.NOTE,
        what="enforce_values had nothing to do: no input has bounds of its values.",
        why="it checks bounds that are declared or were learned, and there are none in the contract.",
        fix=f"declare which values inputs have, such as values={{{bounds}}}",
    )


def nearest_choice(value: Any, choices: Sequence[str]) -> str | None:
    """The choice that is spelt most like the value, in any case of letters; None if none is close."""
    by_lower = {choice.lower(): choice for choice in choices}
    near = get_close_matches(str(value).strip().lower(), list(by_lower), n=1)
    return by_lower[near[0]] if near else None


def nearest(name: str, candidates: Sequence[str]) -> str | None:
    """The candidate that is spelt nearly alike, else the only one that has the name in it; None if there is none."""
    alike = get_close_matches(name, candidates, n=1)
    if alike:
        return alike[0]
    holding = [candidate for candidate in candidates if len(name) > 1 and name in candidate]
    return holding[0] if len(holding) == 1 else None


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 axis`, `2 axes`."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"
