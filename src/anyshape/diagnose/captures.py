"""The model cannot be captured or translated: which line, which operator, and what the module was handed over as.

    torch.export stops at a branch on values                     ->  AS111
    torch.export stops elsewhere                                 ->  AS110
    a program for each size                                      ->  AS113
    torch.onnx cannot translate a program                        ->  AS202
    a module in training mode                                    ->  AS107, a note: it is exported as in eval mode
    a scripted part that stops the capture                       ->  AS114, by its name
    the model tests whether it is exported, and the file differs  ->  that finding, with the line as a further reason

an operator has no function for the shapes it gives    ->  AS115
an operator has no ONNX translation                    ->  AS201, with the template to fill in
a translation is registered for an unknown operator    ->  AS204, a note
a node of the user's own, and no function to run it    ->  AS058
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch._subclasses.fake_tensor import DynamicOutputShapeException

from anyshape.diagnose import first_line
from anyshape.domain import format_condition
from anyshape.findings import Finding, PromiseBroken, Reason, Severity, Source, nearest
from anyshape.findings.finding import text_of_error
from anyshape.modules.raised_errors import chain_of, reads_values
from anyshape.modules.user_code import source_of_error, source_of_stack_text
from anyshape.processes.quiet import LOG
from anyshape.records.captured import Guard
from anyshape.records.export import Untranslatable

QUESTIONS = frozenset(
    {"is_exporting", "is_compiling", "is_dynamo_compiling", "is_in_onnx_export", "is_torchdynamo_exporting"}
)
"""Functions of torch and transformers that are True in a capture and False in eager mode."""
_NO_FAKE = re.compile(
    r"no fake impl registered for <CustomOpDef\((?P<named>[\w:]+)\)>"
    r"|(?P<run>\w+::\w+): attempted to run this operator with Meta tensors"
)
_NO_CHANGES = "let it return a new tensor in place of a change: mutates_args=()."


def diagnose_capture_error(error: BaseException) -> Finding:
    """Why torch.export could not follow the model."""
    LOG.debug("torch.export could not follow the model", exc_info=error)
    chain = list(chain_of(error))
    source = next((found for each in chain if (found := source_of_error(each))), None) or _source_in_text(chain)
    cause = chain[-1]
    if reads_values(error):
        return Finding(
            code="AS111",
            name="branch-on-values",
            reason=Reason.VALUES_DECIDE,
            what="Python reads values of a tensor, and a file cannot follow what depends on them.",
            where=source,
            why="what runs next, or a number in it, differs from input to input (if, while, int(), .item(), numpy).",
            fix="compute with the tensor itself; a choice is torch.where(condition, a, b) or torch.cond(condition, f, g, ...).",
            is_fix_untried=True,
        )
    why = f"{type(cause).__name__}: {first_line(str(cause))}"
    fix = "write it with functions of torch that take sizes as they are: no int(), numpy, .item(), or loop over a dynamic axis."
    if isinstance(cause, DynamicOutputShapeException):
        why = (
            f"the shapes that {cause.func.name()} gives are known only when it runs, and torch.export does not run it."
        )
        fix = "compute it with other operators of torch, or before the model, and hand it over as an input."
    return Finding(
        code="AS110",
        name="capture-refused",
        what="torch.export cannot follow the model at symbolic sizes.",
        where=source,
        why=why,
        fix=fix,
    )


def as_read_from_sizes(finding: Finding) -> Finding:
    """The finding about a read of values, for a number that follows from sizes alone."""
    return replace(
        finding,
        what="Python reads a number that tensors make from sizes; no rule follows it.",
        why="floats, or comparisons of tensors, decide it: no expression of the dims gives it.",
        fix="compute it from x.shape with whole numbers (+ - * // %), or go on with the tensor itself.",
    )


def diagnose_endless_regions(guard: Guard) -> Finding:
    """A condition on sizes that makes another program for each size, or for more sizes than can be distinguished."""
    rule = format_condition(guard.condition) if guard.condition is not None else guard.text
    return Finding(
        code="AS113",
        name="endless-branches",
        what=f"each size takes another path: one program holds only where {rule}.",
        where=guard.source,
        why="a loop over a size, or a size that is turned into a Python number or a text, makes a program for each size.",
        fix="write the loop as operations on whole tensors, and take sizes from x.shape as they are.",
    )


def diagnose_translation_error(error: BaseException) -> Finding:
    """Why torch.onnx could not translate the captured program."""
    LOG.debug("torch.onnx could not translate the program", exc_info=error)
    chain = list(chain_of(error))
    source = _source_in_text(chain)
    return Finding(
        code="AS202",
        name="translation-refused",
        what="the captured program has no translation to ONNX.",
        where=source,
        why=f"{type(chain[-1]).__name__}: {first_line(str(chain[-1]))}",
        fix=f"replace the operation {'on this line' if source else 'that it speaks of'} by ones that ONNX has.",
    )


def _source_in_text(chain: list[BaseException]) -> Source | None:
    texts = [text for each in chain for text in (text_of_error(each), *getattr(each, "__notes__", ()))]
    return next((found for text in texts if (found := source_of_stack_text(text))), None)


def diagnose_training(module: torch.nn.Module) -> tuple[Finding, ...]:
    """A note where some part is in training mode."""
    training = [name for name, part in module.named_modules() if part.training and _depends_on_mode(part)]
    if not training:
        return ()
    parts = ", ".join(map(repr, training[:3])) + (" and others" if len(training) > 3 else "")
    named = "the model is" if "" in training else f"part {parts} is" if len(training) == 1 else f"parts {parts} are"
    return (
        Finding(
            code="AS107",
            name="training-mode",
            severity=Severity.NOTE,
            what=f"{named} in training mode; the file answers as model.eval() does.",
            why="dropout and batch normalisation answer otherwise in training mode.",
            fix="model.eval() before the export says that this is meant.",
        ),
    )


def _depends_on_mode(part: torch.nn.Module) -> bool:
    return isinstance(part, (torch.nn.modules.dropout._DropoutNd, torch.nn.modules.batchnorm._NormBase))


def find_scripted(module: torch.nn.Module) -> Finding | None:
    """The first part that torch.jit.script compiled: torch.export cannot look into it."""
    for name, part in module.named_modules():
        if isinstance(part, torch.jit.ScriptModule):
            called = f"part {name!r}" if name else "the model"
            return Finding(
                code="AS114",
                name="scripted-module",
                what=f"{called} is compiled by torch.jit.script, which cannot be captured.",
                why="a scripted module has no Python code left to follow.",
                fix="export the module as it was before torch.jit.script.",
            )
    return None


def name_exporting_question(findings: Iterable[Finding], asked: tuple[str, Source] | None) -> tuple[Finding, ...]:
    """The findings; the first error with the line of the test, which is a function's name and its line."""
    found = list(findings)
    place = next((index for index, each in enumerate(found) if each.severity is Severity.ERROR), None)
    if asked is None or place is None:
        return tuple(found)
    name, source = asked
    reason = f"{name}() at {source.file}:{source.line} is True in a capture only: the model may run other code there."
    found[place] = replace(found[place], why="\n".join(filter(None, (found[place].why, reason))))
    return tuple(found)


def name_unfollowed(findings: Iterable[Finding], unfollowed: Mapping[str, Source]) -> tuple[Finding, ...]:
    """The findings; the first error with the line that uses a size as nothing follows, by the dim."""
    found = list(findings)
    place = next((index for index, each in enumerate(found) if each.severity is Severity.ERROR), None)
    if place is not None:
        reasons = [f"no rule follows how {name} is used at {source}" for name, source in unfollowed.items()]
        found[place] = replace(found[place], why="\n".join(filter(None, (found[place].why, *reasons))))
    return tuple(found)


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
    match = next((found for each in chain_of(error) if (found := _NO_FAKE.search(text_of_error(each)))), None)
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
