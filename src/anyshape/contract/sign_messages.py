"""Findings about checks of a file that has a contract: sizes outside it, and signatures that cannot be given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anyshape.domain import Domain, dims_of, format_condition, holds
from anyshape.findings import Finding
from anyshape.findings.paths import quoted


def outside_contract(path: str, sizes: Mapping[str, int], domain: Domain, is_own: bool) -> Finding:
    """AS064: nothing is promised at these sizes; `is_own` says whether the domain is that of the file's contract."""
    broken = [condition for condition in domain.conditions() if not holds(condition, sizes)]
    named = dict.fromkeys(name for condition in broken for name in dims_of(condition))
    given = ", ".join(f"{name}={sizes[name]}" for name in named)
    rules = ", ".join(format_condition(condition) for condition in broken)
    return Finding(
        code="AS064",
        name="sizes-outside-contract",
        what=f"{given} lies outside {f'the contract of {path!r}' if is_own else 'the declared domain'}.",
        why=f"{'it promises' if is_own else 'declared is'} {rules}; at other sizes there is nothing to compare.",
        fix=f"anyshape inspect {quoted(path)}      shows what it promises" if is_own else "widen the rules in `where`.",
    )


def cannot_sign(path: str, why: str) -> Finding:
    """AS065: there is nothing that a signature could be about."""
    return Finding(
        code="AS065",
        name="cannot-sign",
        what=f"the contract of {path!r} cannot be renewed.",
        why=why,
        fix=f"anyshape check {quoted(path)} --model model.py      compares without signing",
    )


def other_dims(path: str, promised: Sequence[str], declared: Sequence[str]) -> Finding:
    """AS065: the model file declares other dims than the contract has."""
    why = f"its dims are {', '.join(promised) or 'none'}; those of the model file are {', '.join(declared) or 'none'}."
    return cannot_sign(path, why)


def other_names(path: str, names: Sequence[str], promised: Sequence[str]) -> Finding:
    """AS065: the file no longer has the inputs or outputs that its contract promises."""
    return cannot_sign(path, f"it has {', '.join(names)}, and its contract promises {', '.join(promised)}.")
