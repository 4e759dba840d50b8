"""The model asks whether it is exported, and may then run other code than in eager mode: findings name the line.

AS101, AS3xx of a file that differs     ->  the same, with a further reason
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from anyshape.findings import Finding, Severity, Source

QUESTIONS = frozenset(
    {"is_exporting", "is_compiling", "is_dynamo_compiling", "is_in_onnx_export", "is_torchdynamo_exporting"}
)
"""Functions of torch and transformers that are True in a capture and False in eager mode."""


def name_exporting_question(findings: Iterable[Finding], asked: tuple[str, Source] | None) -> tuple[Finding, ...]:
    """The findings; the first error with the line at which the model asks, which is a function's name and its line."""
    found = list(findings)
    place = next((index for index, each in enumerate(found) if each.severity is Severity.ERROR), None)
    if asked is None or place is None:
        return tuple(found)
    name, source = asked
    reason = f"{name}() at {source.file}:{source.line} is True in a capture only: the model may run other code there."
    found[place] = replace(found[place], why="\n".join(filter(None, (found[place].why, reason))))
    return tuple(found)
