"""What the module was handed over as: in training mode, or with parts that only TorchScript can run.

a module in training mode            ->  AS107, a note: it is exported as in eval mode
a scripted part that stops capture   ->  AS114, by its name
"""

from __future__ import annotations

import torch

from anyshape.findings import Finding, Severity


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
