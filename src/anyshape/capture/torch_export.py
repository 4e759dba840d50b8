"""How torch.export is called: with symbols for all open axes, by the rules of later versions of torch, and below autograd.

All rungs that capture share this: the symbolic one exports the user's module, the others what they learned from traces.

Before torch 2.13, a slice whose end may lie behind its axis (`table[:, :seq]`) has a length that torch makes up (`u0`), with
conditions on it that nothing proves. Later versions write the smaller of the two sizes instead, as do the functions here. In
torch 2.11, positions and counts that `torch.unique` returns have the dtype of its input while it is traced, not int64; and the
length that pooling gives is a floor division with a condition on its remainder, which changes nothing.

torch.export records operators above autograd, where `torch.func.grad`, `jacrev`, `vmap` with `out_dims` and
`torch.autograd.grad` are no operators (seen to torch 2.13). A trace below autograd has plain operators only; it is made first,
and torch.export records a call of it.
"""

from __future__ import annotations

import operator
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import torch
from torch._functorch import eager_transforms, vmap
from torch._subclasses.fake_tensor import is_fake
from torch.export import ExportedProgram
from torch.fx import GraphModule, Interpreter
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, make_fx
from torch.fx.traceback import preserve_node_meta
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import _get_current_function_mode_stack, _pop_mode, _push_mode

from anyshape.domain import Expr, Number
from anyshape.inputs import Declared
from anyshape.intercept.patching import Patch, patched
from anyshape.intercept.quick_tracing import lines_read_late, memory_formats_left_out, small_cache_checks
from anyshape.modules.module_forms import FlatModule

if TYPE_CHECKING:
    from torch.export import ExportedProgram

Decompose = Callable[["ExportedProgram"], "ExportedProgram"]
_INDEX = "_compute_slice_index"
_UNIQUE = "_unique"
_POOLED = "div_rtn"
_RECORDS_MODES = "PreDispatchTorchFunctionMode"  # of the trace above autograd: it writes down each change of grad mode
_TRANSFORMS = (
    (eager_transforms, "_grad_increment_nesting"),
    (eager_transforms, "_jvp_increment_nesting"),
    (vmap, "_vmap_increment_nesting"),
    (torch.autograd, "grad"),
    (torch.autograd, "backward"),
)
DERIVATIVES = {"_grad_increment_nesting", "grad", "backward"}
"""Transforms of which a trace above autograd may be made that cannot be used."""


@contextmanager
def symbolic_sizes() -> Iterator[None]:
    """Enter around torch.export: sizes 0 and 1 get symbols as others do; torch's advice on its own internals is silenced."""
    from torch.fx.experimental import _config

    with ExitStack() as stack:
        stack.enter_context(_config.patch(backed_size_oblivious=True))  # type: ignore[attr-defined]
        stack.enter_context(rules_of_later_torch())
        stack.enter_context(small_cache_checks())
        stack.enter_context(lines_read_late())
        stack.enter_context(memory_formats_left_out())
        stack.enter_context(patched(_broadcast_conditions()))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        yield


def _broadcast_conditions() -> Iterator[Patch]:
    """torch's functions for the common shape of operands, which record all of the conditions under which they return or raise.

    Of `n` and 7, torch takes for granted that `n` is not 1: it records `n != 7` before it raises, and one of the two functions
    raises at a size of 1 as well. A model that catches the error answers at 1 and at 7 otherwise than elsewhere.
    """
    from torch import _meta_registrations, _refs
    from torch._refs import _conversions
    from torch._subclasses import fake_impls

    for place, name in (
        (_refs, "_broadcast_shapes"),
        (_meta_registrations, "_broadcast_shapes"),
        (_conversions, "_broadcast_shapes"),
        (fake_impls, "infer_size"),
    ):
        if name in vars(place):
            yield vars(place), name, _recording_ones(vars(place)[name])


def _recording_ones(own: Any) -> Any:
    def broadcast(*shapes: Any) -> Any:
        given = [shape for shape in shapes if isinstance(shape, Sequence)]
        for sizes in zip_longest(*map(reversed, given), fillvalue=1):
            examples = [_example_of(size) for size in sizes]
            others = {each for each in examples if each not in (None, 1)}
            # Two that differ do not broadcast because neither is 1; one alone does because all others are.
            deciding = {1} if len(others) == 1 else others if len(others) > 1 else set()
            for size, example in zip(sizes, examples, strict=True):
                if example in deciding:
                    bool(size == 1)  # which torch records of a symbol
        return own(*shapes)

    return broadcast


def _example_of(size: Any) -> int | None:
    """The size at which this is traced; None of one that depends on values."""
    node = getattr(size, "node", None)
    if node is None:
        return int(size)
    return int(node.hint) if node.has_hint() else None


def open_axes(declared: Declared) -> tuple[Any, ...]:
    """What torch.export takes as dynamic shapes, one entry a leaf."""
    from torch.export import Dim

    return tuple(
        Dim.AUTO
        if leaf.number is not None
        else {axis: Dim.AUTO for axis, size in enumerate(leaf.axes) if not isinstance(size, Number)}
        for leaf in declared.open_leaves
    )


def declared_sizes(declared: Declared) -> list[tuple[Expr | None, ...]]:
    """The expressions of every open leaf, as `symbols_of` takes them."""
    return [(leaf.number,) if leaf.number is not None else leaf.axes for leaf in declared.open_leaves]


def symbols_of(program: ExportedProgram, sizes: Sequence[tuple[Expr | None, ...]]) -> dict[str, Expr]:
    """Each size symbol of the program's inputs; `sizes` has the expressions of each input's axes, or of its number."""
    symbols: dict[str, Expr] = {}
    for value, expressions in zip(input_values(program), sizes, strict=True):
        for size, expression in zip(getattr(value, "shape", (value,)), expressions, strict=True):
            symbol = symbol_of(size)
            if expression is not None and symbol is not None:
                symbols[symbol] = expression
    return symbols


def input_values(program: ExportedProgram) -> list[Any]:
    """The values of the program's inputs, as torch.export saw them."""
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    return [nodes[str(name)].meta["val"] for name in program.graph_signature.user_inputs]


def symbol_of(size: Any) -> str | None:
    """The name of the symbol that torch.export gave to a size; None for a number and for an expression."""
    # `_expr` is the term as first written; `expr` would be what torch replaced the symbol by.
    term = getattr(getattr(size, "node", None), "_expr", None)
    return term.name if term is not None and term.is_Symbol else None


@contextmanager
def rules_of_later_torch() -> Iterator[None]:
    """Enter around a trace with symbolic sizes: slices, pooling and `torch.unique` are traced as later versions of torch do,
    and `torch.einsum` in an order that does not depend on sizes."""
    patches = (
        _slice_lengths_from_sizes(),
        _whole_positions_of_unique(),
        _pooled_lengths_without_conditions(),
        _contraction_order_of_the_traced_sizes(),
    )
    with patched([patch for each in patches for patch in each]):
        yield


def _contraction_order_of_the_traced_sizes() -> Iterator[Patch]:
    """Where opt_einsum is installed, torch asks it for the cheapest order, and it computes with the sizes as plain numbers."""
    from torch.backends import opt_einsum

    if not opt_einsum.is_available():
        return
    library = opt_einsum.get_opt_einsum()
    own = library.contract_path

    def contract_path(equation: Any, *operands: Any, **options: Any) -> Any:
        shapes = [tuple(_example_of(size) or 1 for size in each.shape) for each in operands]
        return own(equation, *shapes, shapes=True, **options)

    yield vars(library), "contract_path", contract_path


def _pooled_lengths_without_conditions() -> Iterator[Patch]:
    from torch import _meta_registrations

    if _POOLED in vars(_meta_registrations):
        yield vars(_meta_registrations), _POOLED, operator.floordiv


def _whole_positions_of_unique() -> Iterator[Patch]:
    from torch._subclasses import fake_impls

    space = vars(fake_impls)
    if _UNIQUE not in space or "int64" in space[_UNIQUE].__code__.co_names:
        return
    own = space[_UNIQUE]

    def unique(*args: Any, **kwargs: Any) -> Any:
        import torch

        values, *numbers = own(*args, **kwargs)
        return values, *(each.new_empty(each.shape, dtype=torch.int64) for each in numbers)

    yield space, _UNIQUE, unique


def _slice_lengths_from_sizes() -> Iterator[Patch]:
    import torch
    from torch._subclasses import fake_impls

    space, rules = vars(fake_impls), getattr(fake_impls, "op_implementations_dict", {})
    target: Any = torch.ops.aten.slice.Tensor
    if _INDEX not in space or target not in rules:
        return
    index_rule, slice_rule = _with_smaller(space[_INDEX]), rules[target]
    if _has_lengths_of_sizes(space[_INDEX], slice_rule):
        yield space, _INDEX, index_rule
        return

    def slice_forward(
        mode: Any, func: Any, value: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1
    ) -> Any:
        is_axis = -value.dim() <= dim < value.dim() and step > 0
        first, last = _resolve(index_rule, value.size(dim), start, end) if is_axis else (None, None)
        if first is None or last is None or _is_ordered(first, last):  # torch raises, or has a length of its own
            return slice_rule(mode, func, value, dim, start, end, step)
        sizes, strides = list(value.size()), list(value.stride())
        sizes[dim] = (torch.sym_max(last - first, 0) + step - 1) // step
        strides[dim] *= step
        return value.as_strided(sizes, strides, value.storage_offset() + first * value.stride(dim))

    yield space, _INDEX, index_rule
    yield rules, target, slice_forward


def _has_lengths_of_sizes(index_rule: Any, slice_rule: Any) -> bool:
    """Whether torch's own functions compute the smaller of end and size, as those of 2.13 do."""
    return "sym_min" in index_rule.__code__.co_names and "sym_max" in slice_rule.__code__.co_names


def _resolve(index_rule: Any, size: Any, start: Any, end: Any) -> tuple[Any, Any]:
    """Where a slice begins and ends on an axis of this size; None for what torch cannot decide."""
    first = 0 if start is None else index_rule(size, start)
    is_open = end is None or (isinstance(end, int) and end == sys.maxsize)
    return first, size if is_open else index_rule(size, end)


def _is_ordered(first: Any, last: Any) -> bool:
    """Whether torch can decide `last >= first`, or `first >= last`, without a new condition on sizes."""
    from torch.fx.experimental.symbolic_shapes import guard_or_false

    return bool(guard_or_false(last >= first) or guard_or_false(first >= last))


def _with_smaller(own: Any) -> Any:
    """torch's function for one end of a slice, which gives an expression where it gave nothing. The sign of an end
    (`x[:, : n - 5]`) is a condition on sizes."""

    def index_rule(size: Any, index: Any) -> Any:
        import torch
        from torch.fx.experimental.symbolic_shapes import guard_or_false

        found = own(size, index)
        if found is not None:
            return found
        if guard_or_false(index >= 0):
            return torch.sym_min(index, size)
        if guard_or_false(index < 0):
            return torch.sym_max(index + size, 0)
        if not isinstance(index, torch.SymInt) or not index.node.has_hint():
            return None
        if index >= 0:
            return index if guard_or_false(index <= size) else torch.sym_min(index, size)
        return torch.sym_max(index + size, 0)

    return index_rule


class ModuleBelowAutograd(FlatModule):
    """A flat module whose calls are traced below autograd first."""

    def forward(self, *leaves: Any) -> tuple[Any, ...]:
        forward = super().forward
        with (
            _no_trace_above_autograd(),
            sdpa_kernel(SDPBackend.MATH),
        ):  # fused attention has an operator for its gradient
            graph = make_fx(forward, _allow_non_fake_inputs=True, record_stack_traces=True)(*leaves)
        return _run(graph, leaves)


def _run(graph: GraphModule, leaves: tuple[Any, ...]) -> tuple[Any, ...]:
    with preserve_node_meta():  # the lines of the user's code
        return tuple(Interpreter(graph).run(*leaves))


@contextmanager
def _no_trace_above_autograd() -> Iterator[None]:
    """Within this, torch.export records nothing; the other function modes stay."""
    modes = [_pop_mode() for _ in _get_current_function_mode_stack()]
    kept = [mode for mode in reversed(modes) if type(mode).__name__ != _RECORDS_MODES]
    for mode in kept:
        _push_mode(mode)
    try:
        with disable_proxy_modes_tracing():
            yield
    finally:
        for _ in kept:
            _pop_mode()
        for mode in reversed(modes):
            _push_mode(mode)


def has_all_values(program: ExportedProgram) -> bool:
    """Whether all constants of a program have values: what a transform makes on its way may have none."""
    held = [value for value in program.constants.values() if isinstance(value, torch.Tensor)]
    return not any(value.device.type == "meta" or is_fake(value) for value in held)


@contextmanager
def noted_transforms() -> Iterator[set[str]]:
    """Within this, the names of the transforms that run are added to the set that it gives."""
    noted: set[str] = set()
    with patched([_noting(place, name, noted) for place, name in _TRANSFORMS]):
        yield noted


def _noting(place: Any, name: str, noted: set[str]) -> Patch:
    own = getattr(place, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        noted.add(name)
        return own(*args, **kwargs)

    return place, name, call
