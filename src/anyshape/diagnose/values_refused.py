"""The module raises for values that the user declares as legal.

a declared number at which it raises  ->  AS157, the values that it takes
"""

from __future__ import annotations

from anyshape.diagnose.wording import first_line, say_sizes
from anyshape.findings import Finding, Remedy, Source
from anyshape.records.explored import RefusedValue


def diagnose_refused_value(refused: RefusedValue, message: str, source: Source | None) -> Finding:
    """`message` and `source` are those of the error that the module raises."""
    name = refused.name
    return Finding(
        code="AS157",
        name="declared-values-refused",
        what=f"values of {name!r} are declared as {refused.declared}, but the model raises at {refused.number:g}.",
        where=source,
        why=f"at {say_sizes(refused.sizes)}: {first_line(message)}",
        fix=f'declare the values that the model takes: values={{"{name}": "{refused.taken}"}}.'
        if refused.taken
        else "",
        remedy=Remedy(values=((name, refused.taken),)) if refused.taken else None,
        is_fix_untried=bool(refused.taken),
        sizes=dict(refused.sizes),
    )
