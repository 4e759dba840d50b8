"""What the user wrote beside the inputs, read against the call: dynamic, names and input_names together.

An entry of `names` for an input counts as one of `dynamic`; any other entry renames a dim whose name was made up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import torch

from anyshape.domain import Expr, dims_of, unknown_dim
from anyshape.findings import DeclarationError
from anyshape.inputs.assemble import Options
from anyshape.inputs.calls import BoundCall
from anyshape.inputs.forms import Forms, read_forms
from anyshape.inputs.places import call_place, find_place

AUTO = "auto"


@dataclass(frozen=True)
class Written:
    """The axes as declared, and new names for names that were made up."""

    forms: Forms
    renames: Mapping[str, str]


def read_written(options: Options, bound: BoundCall) -> Written:
    """Everything that mentions axes, in one form."""
    root = call_place(bound)
    names = options.names or {}
    words = {key: text for key, text in names.items() if find_place(root, key, {}) is not None}
    renames = {key: text for key, text in names.items() if key not in words}
    dynamic = None if is_auto(options) else options.dynamic
    forms = read_forms(_merged(dynamic, words), bound, _aliases(options, bound), options.output_names)
    return Written(forms, renames)


def is_auto(options: Options) -> bool:
    """Whether the user leaves it to us which axes vary."""
    return isinstance(options.dynamic, str) and options.dynamic == AUTO


def _merged(dynamic: Any, words: Mapping[str, str]) -> Any:
    if not words:
        return dynamic
    return {**words, **dynamic} if isinstance(dynamic, Mapping) else words


def _aliases(options: Options, bound: BoundCall) -> dict[str, str]:
    """Names given to inputs -> their paths, so that a declaration can use either."""
    if isinstance(options.input_names, Mapping):
        return {name: path for path, name in options.input_names.items()}
    names = options.input_names or ()
    tensors = [path for path, value in bound.leaves if isinstance(value, torch.Tensor)]
    numbers = [path for path, value in bound.leaves if isinstance(value, torch.Tensor) or type(value) in (int, float)]
    return dict(zip(names, tensors if len(names) <= len(tensors) else numbers, strict=False))


def check_output_dims(outputs: Mapping[str, Mapping[int, Expr]], dims: Sequence[str]) -> None:
    """Raise DeclarationError on a slip of the pen; any other new name is a size that the model computes."""
    for output, axes in outputs.items():
        for name in (name for expr in axes.values() for name in dims_of(expr)):
            if name not in dims and get_close_matches(name, dims, n=1, cutoff=0.8):
                what = f"output {output!r} uses dim {name!r}, which no input has."
                raise DeclarationError(replace(unknown_dim(name, list(dims)), what=what))
