"""The file answers where the module itself refuses: whoever uses it takes for an answer what is none.

the module raises at some sizes, and the file does not  ->  AS309, the module's own message and line
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from anyshape.diagnose.wording import first_line, replay_option, say_sizes
from anyshape.findings import Finding
from anyshape.records.verdict import Refusal


def diagnose_answers(refusals: Iterable[Refusal], replay: str) -> tuple[Finding, ...]:
    """One finding for all such sizes, the smallest of them named. `replay` is what `anyshape check` is given."""
    answered = [refusal for refusal in refusals if refusal.file_answers]
    if not answered:
        return ()
    smallest = min(answered, key=lambda refusal: prod(size + 1 for size in refusal.sizes.values()))
    others = f"; the same at {len(answered) - 1} other sizes" if len(answered) > 1 else ""
    option = f" --sizes {replay_option(smallest.sizes)}" if smallest.sizes else ""
    finding = Finding(
        code="AS309",
        name="answers-where-model-refuses",
        what=f"the file answers at {say_sizes(smallest.sizes)}, where the model itself refuses.",
        where=smallest.source,
        why=f"the model says: {first_line(smallest.message)}{others}.",
        fix="anyshape export writes a file that refuses there too.",
        replay=f"anyshape check {replay}{option}",
        sizes=smallest.sizes,
    )
    return (finding,)
