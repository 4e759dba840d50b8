"""A model that decides by values, and that no file can follow.

too many ways, or other questions at other sizes   ->  AS116
one way raises at sizes that no rule tells         ->  AS117
"""

from __future__ import annotations

from anyshape.findings import Finding, Source
from anyshape.records.verdict import Refusal


def too_many_questions(source: Source | None, most: int) -> Finding:
    """Ways that multiply, or questions that are not the same at all sizes."""
    return Finding(
        code="AS116",
        name="endless-questions",
        what="the model decides by values again and again.",
        where=source,
        why=f"more than {most} ways lead through it, or what it asks changes with the sizes.",
        fix="write the choice as torch.where(condition, a, b), or torch.cond(condition, f, g, inputs).",
        is_fix_untried=True,
    )


def refuses_somewhere(refused: Refusal) -> Finding:
    """A way through the model that raises where no rule tells."""
    return Finding(
        code="AS117",
        name="way-refuses-somewhere",
        what=f"one way through the model answers at some sizes only: {refused.message.splitlines()[0]}",
        where=refused.source,
        why="no simple rule tells where.",
        fix="let every way through forward answer at all sizes.",
        sizes=dict(refused.sizes),
    )
