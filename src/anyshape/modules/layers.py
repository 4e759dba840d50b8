"""A layer of torch.nn whose weights fix a width, and the line of the user's code that makes it.

self.head = nn.Linear(10, 5)    ->    'head' is a Linear with in_features=10
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import dataclass

import torch

from anyshape.findings import Source
from anyshape.modules.frames import is_users, make_source

_WIDTHS = ("in_features", "in_channels", "num_features", "num_channels", "normalized_shape", "input_size", "embed_dim")


@dataclass(frozen=True)
class Layer:
    """A layer by its name in the model, its class, the attribute that has its width, and the line that makes it."""

    name: str
    kind: str
    attribute: str
    width: int
    source: Source | None = None


def find_raising_part(error: BaseException, module: torch.nn.Module) -> str:
    """The name of the innermost part of the module, of a class of torch.nn, in which the error was raised; else ""."""
    found: object = None
    traceback = error.__traceback__
    while traceback is not None:
        part = traceback.tb_frame.f_locals.get("self")
        if isinstance(part, torch.nn.Module):
            found = part if type(part).__module__.startswith("torch.nn.") else None
        traceback = traceback.tb_next
    return next((name for name, part in module.named_modules() if part is found), "") if found is not None else ""


def find_layer(module: torch.nn.Module, name: str) -> Layer | None:
    """The part of this name, if it is a layer whose weights fix the width of what it takes."""
    part = dict(module.named_modules()).get(name) if name else None
    for attribute in _WIDTHS:
        width = getattr(part, attribute, None)
        if isinstance(width, tuple) and width:
            width = width[-1]
        if type(width) is int:
            return Layer(name, type(part).__name__, attribute, width, _line_that_makes(module, name))
    return None


def _line_that_makes(module: torch.nn.Module, name: str) -> Source | None:
    """The line in a class of the user's that assigns the part, or the container that holds it, to an attribute of self."""
    path = name.split(".")
    parts = dict(module.named_modules())
    for length in reversed(range(len(path))):
        owner = type(parts.get(".".join(path[:length])))
        source = _assignment(owner, path[length])
        if source is not None:
            return source
    return None


def _assignment(owner: type, attribute: str) -> Source | None:
    try:
        file = inspect.getsourcefile(owner)
        lines, first = inspect.getsourcelines(owner)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    if file is None or not is_users(file):
        return None
    for function in ast.walk(tree):
        for node in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
            targets = node.targets if isinstance(node, ast.Assign) else ()
            if any(isinstance(target, ast.Attribute) and target.attr == attribute for target in targets):
                return make_source(file, first + node.lineno - 1, f"{owner.__qualname__}.{function.name}")  # type: ignore[attr-defined]
    return None
