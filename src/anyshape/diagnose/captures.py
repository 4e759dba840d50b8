"""The model cannot be captured or translated: which line, which operator, and what the module was handed over as.

torch.export stops at a branch on values                     ->  AS111
torch.export stops elsewhere                                 ->  AS110
a program for each size                                      ->  AS113
torch.onnx cannot translate a program                        ->  AS202
a module in training mode                                    ->  AS107, a note: it is exported as in eval mode
a scripted part that stops the capture                       ->  AS114, by its name
the model tests whether it is exported, and the file differs  ->  that finding, with the line as a further reason
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import torch

from anyshape.diagnose.wording import first_line
from anyshape.domain import format_condition
from anyshape.findings import Finding, Reason, Severity, Source
from anyshape.intercept.quiet import LOG
from anyshape.modules.frames import source_of_error, source_of_stack_text
from anyshape.modules.raised_errors import chain_of, reads_values
from anyshape.records.captured import Guard


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
    return Finding(
        code="AS110",
        name="capture-refused",
        what="torch.export cannot follow the model at symbolic sizes.",
        where=source,
        why=f"{type(cause).__name__}: {first_line(str(cause))}",
        fix="take sizes from x.shape without int(), numpy or .item(), and keep loops over a dynamic axis out of forward.",
    )


def diagnose_endless_regions(guard: Guard) -> Finding:
    """A condition on sizes that makes another program for each size, or for more sizes than can be distinguished."""
    rule = format_condition(guard.condition) if guard.condition is not None else guard.text
    return Finding(
        code="AS113",
        name="endless-branches",
        what=f"each size takes another path: one program holds only where {rule}.",
        where=guard.source,
        why="a loop over a size, or a size that is turned into a Python number, makes a program for each size.",
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
    return next((found for each in chain if (found := source_of_stack_text(str(each)))), None)


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


QUESTIONS = frozenset(
    {"is_exporting", "is_compiling", "is_dynamo_compiling", "is_in_onnx_export", "is_torchdynamo_exporting"}
)
"""Functions of torch and transformers that are True in a capture and False in eager mode."""


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
