"""`anyshape.translation`: how the user's own operators are written in ONNX, for this process.

The one thing in the package that a call changes for good: a decorator has nowhere else to leave what it decorates. Nothing
of anyshape's registers here, and `export(translations=...)` says the same for a single call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar, overload

from anyshape.findings import Finding, UsageError

Function = TypeVar("Function", bound=Callable[..., Any])

_OPERATOR = re.compile(r"\w+::\w+(\.\w+)?")
_NODE = re.compile(r"[\w.-]+::\w+")
_RUNTIMES_OWN = ("ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training", "com.microsoft")
_REGISTERED: dict[str, Translation] = {}


@dataclass(frozen=True)
class Translation:
    """How one operator is written: by a function of onnxscript, or as the node `node`, which the function runs."""

    operator: str
    function: Callable[..., Any]
    node: str | None = None

    def __post_init__(self) -> None:
        if not _OPERATOR.fullmatch(self.operator):
            raise UsageError(_not_a_name(self.operator, "operator", "mylib::scale", "torch.ops.mylib.scale"))
        if self.node is not None and not _NODE.fullmatch(self.node):
            raise UsageError(_not_a_name(self.node, "node", "mylib::Scale", "domain 'mylib', operator 'Scale'"))
        if self.node is not None and self.node.partition("::")[0] in _RUNTIMES_OWN:
            raise UsageError(_taken_domain(self.node))
        if not callable(self.function):
            raise UsageError(_not_callable(self.operator, self.function))


class Registration:
    """A translation for this process; as a context manager, for the length of the block."""

    def __init__(self, translation: Translation) -> None:
        self.translation = translation
        self._before = _REGISTERED.get(translation.operator)
        _REGISTERED[translation.operator] = translation

    def remove(self) -> None:
        """Put back what was registered before, whatever has come since."""
        if self._before is None:
            _REGISTERED.pop(self.translation.operator, None)
        else:
            _REGISTERED[self.translation.operator] = self._before

    def __enter__(self) -> Registration:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


@overload
def translation(operator: str, *, node: str | None = None) -> Callable[[Function], Function]: ...
@overload
def translation(operator: str, function: Callable[..., Any], *, node: str | None = None) -> Registration: ...
def translation(
    operator: str, function: Callable[..., Any] | None = None, *, node: str | None = None
) -> Callable[[Function], Function] | Registration:
    """Say how an operator is written in ONNX. It goes before all other translations, and is checked like everything else.

    @anyshape.translation("mylib::scale")
    def scale_in_onnx(x, factor):       # the operator's own arguments; ONNX values in, ONNX values out
        return op.Mul(x, op.Constant(value_float=factor))

    `node="mylib::Scale"` keeps the operator as a node of that domain and name, and the function is what runs it: numpy
    arrays positional, other arguments by keyword, numpy arrays back. The file's contract then says that a runtime needs
    `mylib::Scale`, and `anyshape.load` runs it.

    An operator without an overload (`mylib::scale`, not `mylib::scale.int`) means all of its overloads. It need not exist
    yet. `with anyshape.translation("mylib::scale", function): ...` registers for the length of the block.
    """
    if function is not None:
        return Registration(Translation(operator, function, node))

    def register(decorated: Function) -> Function:
        Registration(Translation(operator, decorated, node))
        return decorated

    return register


def collect_translations(given: Mapping[Any, Callable[..., Any]] | None = None) -> dict[Any, Translation]:
    """What is registered, and in front of it what is given for one call: by name, or by torch's own operator."""
    collected: dict[Any, Translation] = dict(_REGISTERED)
    for target, function in (given or {}).items():
        name = target if isinstance(target, str) else _name_of(target)
        collected.pop(name, None)
        collected[target] = Translation(name, function)
    return collected


def collect_operators(given: Mapping[str, Callable[..., Any]] | None = None) -> dict[str, Callable[..., Any]]:
    """The function that runs each custom node, by the node's name: those registered, and in front those given."""
    registered = {each.node: each.function for each in _REGISTERED.values() if each.node is not None}
    return {**registered, **(given or {})}


def _name_of(target: Any) -> str:
    """Of an overload `mylib::scale.int`; torch's other targets (`torch.sym_not`) are no operators, and have none."""
    return str(target.name()) if hasattr(type(target), "namespace") else "python::function"


def _not_a_name(given: str, kind: str, example: str, means: str) -> Finding:
    return Finding(
        code="AS057",
        name="translation",
        what=f"{given!r} is not the name of {'an' if kind == 'operator' else 'a'} {kind}.",
        why=f"a name has two parts: {example!r} is {means}.",
        fix=f"{given.replace('torch.ops.', '').replace('.', '::', 1)!r}" if given.startswith("torch.ops.") else "",
    )


def _taken_domain(node: str) -> Finding:
    domain, _, name = node.partition("::")
    return Finding(
        code="AS057",
        name="translation",
        what=f"a node of your own cannot be {node!r}.",
        why=f"the domain {domain!r} is the runtime's.",
        fix=f"node='mylib::{name}'",
    )


def _not_callable(operator: str, given: Any) -> Finding:
    return Finding(
        code="AS057",
        name="translation",
        what=f"the translation of {operator!r} is {type(given).__name__}, not a function.",
        fix="give a function that takes the operator's arguments and returns ONNX values.",
    )
