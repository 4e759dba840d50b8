"""The user's own translations -> what torch.onnx's registry takes: by overload, called with the operator's own arguments.

"mylib::scale"            ->  every overload of torch.ops.mylib.scale that there is
a function of onnxscript  ->  the same, with the defaults of the operator's schema filled in
node="mylib::Scale"       ->  one node: tensors and sizes are inputs, in order; everything else is an attribute
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch
from torch._ops import OpOverload

from anyshape.modules.registered import Translation

_VERSION = 1


def resolve_translations(translations: Mapping[Any, Translation]) -> dict[Any, Callable[..., Any]]:
    """By torch's own targets; what names no operator that exists is left out. The more exact name goes first."""
    resolved: dict[Any, Callable[..., Any]] = {}
    for target, translation in sorted(translations.items(), key=lambda item: _exactness(item[0])):
        for overload in find_overloads(target) if isinstance(target, str) else [target]:
            resolved[overload] = _writing(overload, translation)
    return resolved


def find_overloads(name: str) -> list[OpOverload]:
    """The overloads of a name; none if there is no such operator."""
    namespace, _, rest = name.partition("::")
    packet_name, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace), packet_name, None)
    if packet is None:
        return []
    return [getattr(packet, each) for each in packet.overloads() if overload in ("", each)]


def _exactness(target: Any) -> int:
    """The later entry counts: a name without an overload, then one with it, then the operator itself."""
    return ("." in target) if isinstance(target, str) else 2


def _writing(target: Any, translation: Translation) -> Callable[..., Any]:
    if not isinstance(target, OpOverload):
        return translation.function
    schema = target._schema
    function = _keeping(translation.node, schema) if translation.node is not None else translation.function
    if hasattr(function, "function_ir"):  # onnxscript's own kind of function knows its signature
        return function

    # Without the user's annotations: torch.onnx would read them as ONNX types, and warn that it cannot.
    def write(*args: Any, **kwargs: Any) -> Any:
        positional = [argument for argument in schema.arguments if not argument.kwarg_only]
        named = [argument for argument in schema.arguments if argument.kwarg_only]
        missing = positional[len(args) :]
        return function(
            *args,
            *(kwargs.get(argument.name, argument.default_value) for argument in missing),
            **{argument.name: kwargs.get(argument.name, argument.default_value) for argument in named},
        )

    return write


def _keeping(node: str, schema: Any) -> Callable[..., Any]:
    domain, _, op_type = node.partition("::")

    def keep(*args: Any, **kwargs: Any) -> Any:
        import onnxscript.evaluator

        inputs: list[ir.Value | None] = []
        attributes: dict[str, Any] = {}
        for argument, value in zip(schema.arguments, (*args, *kwargs.values()), strict=True):
            if _is_list_of_values(value):
                raise ValueError(f"argument {argument.name!r} of {schema.name} is a list of tensors or sizes")
            if isinstance(value, ir.Value) or (value is None and "Tensor" in str(argument.type)):
                inputs.append(value)
            elif value is not None:
                attributes[argument.name] = int(value) if isinstance(value, bool) else value
        while inputs and inputs[-1] is None:
            inputs.pop()
        made = ir.node(op_type, inputs, attributes, domain=domain, num_outputs=len(schema.returns), version=_VERSION)
        onnxscript.evaluator.default().nodes.append(made)  # torch.onnx's recorder
        return made.outputs if len(made.outputs) > 1 else made.outputs[0]

    return keep


def _is_list_of_values(value: Any) -> bool:
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return is_list and any(isinstance(each, ir.Value) for each in value)
