"""`declare`: a declaration of inputs, in any of its forms -> one record.

A callable is a function of sizes, a list is several examples, everything else is one example.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from anyshape.domain import Condition
from anyshape.findings import DeclarationError
from anyshape.inputs.assemble import Options
from anyshape.inputs.by_examples import declare_by_examples
from anyshape.inputs.by_function import declare_by_function
from anyshape.inputs.call_messages import no_examples
from anyshape.inputs.calls import Inputs, read_signature
from anyshape.inputs.declared import Declared
from anyshape.inputs.making import declare_values
from anyshape.inputs.torch_forms import additional_examples


def declare(
    module: Callable[..., Any],
    inputs: Any,
    *,
    dynamic: Any = None,
    where: Sequence[str | Condition] | str = (),
    input_names: Sequence[str] | Mapping[str, str] | None = None,
    names: Mapping[str, str] | None = None,
    output_names: Sequence[str] | None = None,
    example_sizes: Mapping[str, Any] | None = None,
    values: Mapping[str, str] | str | None = None,
) -> Declared:
    """The declaration of a module's inputs. Raises DeclarationError, which names the input and the axis."""
    further = additional_examples(dynamic)
    if further and not is_sizes_function(inputs):
        inputs, dynamic = [*(inputs if isinstance(inputs, list) else [inputs]), *further], None
    options = Options(
        dynamic=dynamic,
        where=(where,) if isinstance(where, (str, Condition)) else tuple(where),
        input_names=input_names,
        names=names,
        output_names=None if output_names is None else tuple(output_names),
        example_sizes=dict(example_sizes or {}),
    )
    signature = read_signature(module)
    if dynamic is not None and makes_one_example(inputs):
        inputs = declare_by_function(signature, inputs, replace(options, dynamic=None, where=(), names=None)).example
    if is_sizes_function(inputs):
        return declare_values(declare_by_function(signature, inputs, options), values)
    examples = inputs if isinstance(inputs, list) else [inputs]
    if not examples:
        raise DeclarationError(no_examples())
    return declare_values(declare_by_examples(module, signature, examples, options), values)


def makes_one_example(inputs: Any) -> bool:
    """Whether the inputs are a function without parameters: with words for the axes of what it returns, that is an example."""
    try:
        return is_sizes_function(inputs) and not inspect.signature(inputs).parameters
    except (TypeError, ValueError):  # a callable that shows no signature
        return False


def is_sizes_function(inputs: Any) -> bool:
    """Whether the inputs are a function of sizes rather than inputs themselves."""
    return callable(inputs) and not isinstance(inputs, (Inputs, torch.Tensor, torch.nn.Module))
