"""Operators without a translation, and translations of operators that do not exist.

an operator has no function for the shapes it gives    ->  AS115
an operator has no ONNX translation                    ->  AS201, with the template to fill in
a translation is registered for an unknown operator    ->  AS204, a note
a node of the user's own, and no function to run it    ->  AS058
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import torch

from anyshape.diagnose.wording import first_line
from anyshape.findings import Finding, PromiseBroken, Severity, Source
from anyshape.findings.choices import nearest
from anyshape.modules.frames import source_of_error, source_of_stack_text
from anyshape.modules.raised_errors import chain_of
from anyshape.records.export import Untranslatable

_NO_FAKE = re.compile(
    r"no fake impl registered for <CustomOpDef\((?P<named>[\w:]+)\)>"
    r"|(?P<run>\w+::\w+): attempted to run this operator with Meta tensors"
)
_NO_CHANGES = "let it return a new tensor in place of a change: mutates_args=()."


def diagnose_untranslatable(found: Untranslatable, translations: Iterable[Any] = ()) -> Finding:
    """An operator that has no ONNX translation. `translations` are those that the user has given."""
    names = [name for name in translations if isinstance(name, str)]
    near = nearest(found.operator, names)
    return Finding(
        code="AS201",
        name="operator-without-translation",
        what=f"operator {found.operator} has no translation to ONNX.",
        where=source_of_stack_text(found.stack),
        why="\n".join(_reasons(found, near)),
        fix=_NO_CHANGES if found.mutates else _template(found),
        is_fix_untried=not found.mutates,
        alternative="" if found.mutates else _template_of_node(found),
    )


def find_missing_fake(error: BaseException) -> Finding | None:
    """The finding where torch.export stopped at an operator without a function for shapes; None elsewhere."""
    match = next((found for each in chain_of(error) if (found := _NO_FAKE.search(str(each)))), None)
    if match is None:
        return None
    operator = match["named"] or match["run"]
    return Finding(
        code="AS115",
        name="operator-without-shapes",
        what=f"operator {operator} does not say which shapes it gives.",
        where=source_of_error(error),
        why="torch follows a model without running it, and needs a fake implementation of each operator for that.",
        fix=f'torch.library.register_fake("{operator}", {_fake_of(operator)})    # or what it gives',
        is_fix_untried=True,
    )


def _fake_of(operator: str) -> str:
    """A function that takes the operator's arguments, and gives a tensor like its first tensor."""
    space, _, name = operator.partition("::")
    try:
        arguments = getattr(getattr(torch.ops, space), name).default._schema.arguments
    except AttributeError:
        return "lambda x: torch.empty_like(x)"
    place = next((index for index, each in enumerate(arguments) if "Tensor" in str(each.type)), 0)
    names = [each.name for each in arguments[: place + 1]]
    rest = ["*others"] if len(arguments) > len(names) else []
    return f"lambda {', '.join([*names, *rest])}: torch.empty_like({names[-1] if names else 'x'})"


def diagnose_unknown(unknown: Mapping[str, tuple[str, ...]]) -> Iterator[Finding]:
    """A translation that nothing can use, where the model has an operator of almost that name."""
    for name, used in unknown.items():
        near = nearest(name, used)
        if near is not None:
            yield Finding(
                code="AS204",
                name="translation-not-used",
                severity=Severity.NOTE,
                what=f"the translation of {name!r} is not used: torch has no such operator.",
                why=f"the model has {near!r}.",
                fix=f"@anyshape.translation({near!r})",
                is_fix_untried=True,
            )


def check_runnable(needs: Iterable[str], operators: Collection[str]) -> None:
    """Raises PromiseBroken where a custom node has no function, since the file could not be run for comparison."""
    missing = [need for need in needs if need not in operators]
    if missing:
        raise PromiseBroken(
            Finding(
                code="AS058",
                name="operator-not-given",
                what=f"the file would need {', '.join(missing)}, and no function for {_it(missing)} is known.",
                why="a translation writes a node that onnxruntime does not have, so the file cannot be compared.",
                fix=f'@anyshape.translation(..., node="{missing[0]}") above a function of numpy arrays.',
                is_fix_untried=True,
            )
        )


def _it(names: Collection[str]) -> str:
    return "it" if len(names) == 1 else "them"


def _reasons(found: Untranslatable, near: str | None) -> Iterator[str]:
    yield "neither torch.onnx nor anyshape knows how to write it."
    if near is not None:
        yield f"you gave a translation of {near!r}; did you mean {found.operator!r}?"
    if found.mutates:
        yield "it changes its arguments, which no node of ONNX does."
    if found.body is not None:
        place = source_of_error(found.body)
        at = f"   ({place.file}:{place.line})" if isinstance(place, Source) else ""
        yield f"its Python body cannot be followed: {type(found.body).__name__}: {first_line(str(found.body))}{at}"


def _template(found: Untranslatable) -> str:
    values = ", ".join(["..."] * found.outputs)
    one = next(iter(found.tensors), "x")
    return "\n".join(
        (
            "say how, with onnxscript (from onnxscript import opset18 as op):",
            f'@anyshape.translation("{found.operator}")',
            f"def {_identifier(found)}({', '.join((*found.tensors, *found.others))}):",
            f"    return {values}    # such as op.Mul({one}, {one})",
        )
    )


def _template_of_node(found: Untranslatable) -> str:
    others = ["*", *found.others] if found.others else []
    return "\n".join(
        (
            "keep it as a node, which anyshape.load runs and other runtimes need:",
            f'@anyshape.translation("{found.operator}", node="{found.operator.partition(".")[0]}")',
            f"def {_identifier(found)}({', '.join((*found.tensors, *others))}):",
            f"    return {', '.join(['...'] * found.outputs)}    # numpy arrays",
        )
    )


def _identifier(found: Untranslatable) -> str:
    return found.operator.partition("::")[2].replace(".", "_")
