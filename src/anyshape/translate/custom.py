"""The user's own operators: with their registered translations, or as their Python bodies, traced at the program's
symbolic sizes.

    "mylib::scale"            ->  every overload of torch.ops.mylib.scale that there is
    a function of onnxscript  ->  the same, with the defaults of the operator's schema filled in
    node="mylib::Scale"       ->  one node: tensors and sizes are inputs, in order; everything else is an attribute

    torch.ops.mylib.scale(x)  ->  what the function does that `torch.library` was given for it, if torch can follow it

Only kernels that were registered from Python are called: a compiled one would read memory that a traced tensor has not.
An operator that changes its arguments is called by the function that it was made of, whose changes torch follows.
torch's private names are used for this (`torch.library._impls` has the origin of a kernel, `_op_dk` calls it,
`_maybe_get_opdef` gives the function).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch
from torch._library.custom_ops import _maybe_get_opdef
from torch._ops import HigherOrderOperator, OpOverload

from anyshape.modules.registered import Translation

if TYPE_CHECKING:
    from torch.export import ExportedProgram


_VERSION = 1
_NOT_USERS = ("aten", "prim", "prims", "anyshape")  # torch has Python kernels too, and they lead back to themselves
_KERNELS = ("CPU", "CompositeExplicitAutograd")


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


Decomposition = Callable[..., Any]


class Inliner:
    """Bodies of operators, as decompositions; `refusals` has the error of each that could not be followed."""

    def __init__(self, is_translated: Callable[[OpOverload], bool]) -> None:
        self._is_translated = is_translated
        self.refusals: dict[str, BaseException] = {}

    def decompose(self, program: ExportedProgram, table: dict[Any, Decomposition]) -> ExportedProgram:
        """The program decomposed by the table and, where that leaves a custom operator, by its body."""
        changing = [(node, node.target) for node in program.graph.nodes if self._may_follow_changes(node.target)]
        try:
            return self._with_bodies_of(changing, program, table)
        finally:
            for node, target in changing:
                node.target = target

    def _with_bodies_of(
        self, changing: list[tuple[torch.fx.Node, Any]], program: ExportedProgram, table: dict[Any, Decomposition]
    ) -> ExportedProgram:
        """Operators that change arguments are called by their bodies, whose own changes torch then follows."""
        while True:
            known = len(self.refusals)
            for node, target in changing:
                kernel = find_body(target) if target.name() not in self.refusals else None
                node.target = self._watched(target, kernel) if kernel is not None else target
            if changing:
                program.graph_module.recompile()
            try:
                return self._decompose(program, table)
            except Exception:
                if len(self.refusals) == known:
                    raise

    def _may_follow_changes(self, target: Any) -> bool:
        if not isinstance(target, OpOverload) or not target._schema.is_mutable or target.namespace in _NOT_USERS:
            return False
        return not self._is_translated(target)

    def _decompose(self, program: ExportedProgram, table: dict[Any, Decomposition]) -> ExportedProgram:
        bodies: dict[OpOverload, Decomposition] = {}
        result = program.run_decompositions(table)
        while fresh := {each: body for each, body in self._bodies(result) if each not in bodies}:
            bodies |= fresh
            result = self._decompose_by_bodies(program, table, bodies) or result
            bodies = {target: body for target, body in bodies.items() if target.name() not in self.refusals}
        return result

    def _decompose_by_bodies(
        self, program: ExportedProgram, table: dict[Any, Decomposition], bodies: dict[OpOverload, Decomposition]
    ) -> ExportedProgram | None:
        """Without those bodies that refuse; None if that leaves none."""
        while followed := {each: body for each, body in bodies.items() if each.name() not in self.refusals}:
            known = len(self.refusals)
            try:
                return program.run_decompositions(table | followed)
            except Exception:
                if len(self.refusals) == known:
                    raise
        return None

    def _bodies(self, program: ExportedProgram) -> Iterator[tuple[OpOverload, Decomposition]]:
        for target in operators_of(program):
            if target.namespace in _NOT_USERS or target.name() in self.refusals or self._is_translated(target):
                continue
            kernel = find_python_kernel(target)
            if kernel is not None and not target._schema.is_mutable:
                yield target, self._watched(target, kernel)

    def _watched(self, target: OpOverload, kernel: Decomposition) -> Decomposition:
        def body(*args: Any, **kwargs: Any) -> Any:
            try:
                return kernel(*args, **kwargs)
            except Exception as error:
                self.refusals.setdefault(target.name(), error)
                raise

        return body


def find_python_kernel(target: OpOverload) -> Decomposition | None:
    """The kernel that eager runs on the CPU, if it was registered from Python; None for a compiled one."""
    namespace, _, name = target.name().partition("::")
    for key in _KERNELS:
        if f"{namespace}/{name}/{key}" in torch.library._impls:
            dispatch_key = getattr(torch._C.DispatchKey, key)
            return lambda *args, **kwargs: target._op_dk(dispatch_key, *args, **kwargs)
        if target.has_kernel_for_dispatch_key(getattr(torch._C.DispatchKey, key)):
            return None
    return None


def find_body(target: OpOverload) -> Decomposition | None:
    """The function itself that `torch.library.custom_op` was given; None for an operator that was made otherwise.

    A kernel that is called by torch comes back as the operator while changes are followed; a function does not.
    """
    definition = _maybe_get_opdef(target)
    functions = definition._backend_fns if definition is not None else {}
    return functions.get("cpu", functions.get(None))


def operators_of(program: ExportedProgram) -> list[OpOverload]:
    """Every operator that a program calls, once, in order; those that torch wraps because they change arguments too."""
    found: dict[OpOverload, None] = {}
    for node in nodes_of(program):
        target = mutating_operator(node) or node.target
        if isinstance(target, OpOverload):
            found.setdefault(target)
    return list(found)


def nodes_of(program: ExportedProgram) -> Iterator[torch.fx.Node]:
    """The nodes of a program, and those of the functions that its control flow calls."""
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield from module.graph.nodes


def mutating_operator(node: torch.fx.Node) -> OpOverload | None:
    """The operator inside torch's `auto_functionalized`, which wraps one that changes its arguments."""
    wraps = isinstance(node.target, HigherOrderOperator) and node.target.name().startswith("auto_functionalized")
    return node.args[0] if wraps and isinstance(node.args[0], OpOverload) else None
