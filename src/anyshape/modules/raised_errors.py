"""Why a call of the module raised: the operation, a tensor or table that does not fit there, a layer whose weights fix a width.

The module is called once more under a mode that sees each torch function. The innermost function that raises is the one.

    self.head = nn.Linear(10, 5)    ->    'head' is a Linear with in_features=10
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from anyshape.findings import Source
from anyshape.findings.finding import text_of_error
from anyshape.modules.user_code import is_users, make_source

if TYPE_CHECKING:
    import torch

_PRODUCTS = ("linear", "matmul", "mm", "einsum", "conv")
_NOT_BY_BROADCASTING = (*_PRODUCTS, "embedding", "norm", "pool", "cat", "stack", "attention")
_TYPES = ("GuardOnDataDependentSymNode", "PendingUnbackedSymbolNotFound", "DataDependentOutputException")
_WIDTHS = ("in_features", "in_channels", "num_features", "num_channels", "normalized_shape", "input_size", "embed_dim")


@dataclass(frozen=True)
class HeldTensor:
    """A tensor that the module holds: `self.pos` of shape (16, 8).

    `is_factor`: the operation is a product with it, which takes no part of it in its place.
    """

    name: str
    shape: tuple[int, ...]
    is_factor: bool = False


def find_misfit(module: torch.nn.Module, call: Callable[[], object]) -> HeldTensor | None:
    """The module's own tensor that does not broadcast with the others of the operation that raised, or is a factor in it.

    None without one. A tensor of the same shape that is made of held ones alone, `self.mask == 0`, counts as held.
    """
    watch = _Watch(dict(_held(module)))
    try:
        with watch:
            call()
    except Exception:  # the refusal that is looked at
        pass
    if any(part in watch.name for part in _PRODUCTS):
        factors = [(watch.name_of(tensor), tuple(tensor.shape)) for tensor in watch.raised_on]
        return next((HeldTensor(name, shape, is_factor=True) for name, shape in factors if name is not None), None)
    if any(part in watch.name for part in _NOT_BY_BROADCASTING):
        return None
    for tensor in watch.raised_on:
        others = [other for other in watch.raised_on if other is not tensor]
        name = watch.name_of(tensor)
        if name is not None and not all(_broadcasts(tensor.shape, other.shape) for other in others):
            return HeldTensor(name, tuple(tensor.shape))
    return None


def _held(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for prefix, part in module.named_modules():
        for name, value in {**vars(part), **part._parameters, **part._buffers}.items():
            if isinstance(value, torch.Tensor):
                yield f"{prefix}.{name}" if prefix else name, value


def _broadcasts(one: torch.Size, other: torch.Size) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(one), reversed(other), strict=False))


class _Watch(TorchFunctionMode):  # type: ignore[misc]
    """Follows held tensors through the functions of a call, up to the one that raises."""

    def __init__(self, held: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self.name = ""
        self.raised_on: list[torch.Tensor] = []
        self._held = {id(tensor): (name, tensor) for name, tensor in held.items()}  # the tensor too: ids are used again

    def name_of(self, tensor: torch.Tensor) -> str | None:
        return self._held[id(tensor)][0] if id(tensor) in self._held else None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        try:
            result = func(*args, **(kwargs or {}))
        except Exception:
            if not self.raised_on:  # the innermost comes first
                self.name, self.raised_on = getattr(func, "__name__", "").lower(), given
            raise
        names = [self.name_of(tensor) for tensor in given]
        is_alike = isinstance(result, torch.Tensor) and names and result.shape == given[0].shape
        if is_alike and None not in names:
            self._held.setdefault(id(result), (str(names[0]), result))
        return result


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """The error and what caused it, outermost first."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def reads_values(error: BaseException) -> bool:
    """Whether a capture ended because what runs next depends on values."""
    return any(type(each).__name__ in _TYPES for each in chain_of(error)) or "data-dependent" in text_of_error(error)


def find_table_rows(module: torch.nn.Module) -> tuple[int, ...]:
    """Rows of embeddings, and sizes of the axes of tensors that modules of the user's own hold, in ascending order.

    A vector as long as torch's own layers beside it are wide is a weight for each feature, and no table.
    """
    import torch

    rows: set[int] = set()
    widths: set[int] = set()
    vectors: set[int] = set()
    for each in module.modules():
        if isinstance(each, torch.nn.Embedding):
            rows.add(each.num_embeddings)
            continue
        shapes = [tensor.shape for tensor in (*each.parameters(recurse=False), *each.buffers(recurse=False))]
        if type(each).__module__.startswith("torch.nn."):
            widths.update(size for shape in shapes for size in shape)
        else:
            vectors.update(shape[0] for shape in shapes if len(shape) == 1)
            rows.update(size for shape in shapes if len(shape) > 1 for size in shape)
    return tuple(sorted(rows | (vectors - widths)))


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
