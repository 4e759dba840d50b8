"""Parts of a module whose `forward` is compiled: TorchScript, or an extension. No line of theirs can be traced or read."""

from __future__ import annotations

import inspect
from types import FunctionType

import torch

from anyshape.findings import Source
from anyshape.modules.user_code import FOREIGN_MODULES, find_line_of, unwrapped


def find_unwatched(module: torch.nn.Module) -> dict[str, Source | None]:
    """The compiled parts by name, each with the first line that names it, if that is found."""
    found: dict[str, Source | None] = {}
    for name, part in module.named_modules():
        if not _is_compiled(part) or any(name.startswith(f"{above}.") for above in found):
            continue
        callers = (find_line_of(module, [attribute]) for attribute in reversed(name.split(".")))
        found[name or type(part).__name__] = next((line for _, line in filter(None, callers)), None)
    return found


def _is_compiled(part: torch.nn.Module) -> bool:
    if isinstance(part, torch.jit.ScriptModule):
        return True
    forward = unwrapped(inspect.getattr_static(type(part), "forward", None))
    is_foreign = type(part).__module__.partition(".")[0] in FOREIGN_MODULES
    return not isinstance(forward, FunctionType) and not is_foreign
