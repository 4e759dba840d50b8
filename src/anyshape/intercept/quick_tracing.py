"""Make traces of torch quicker: leave out work whose results the trace does not use or has already; keep expressions short.

`small_cache_checks`: for each new entry of its cache of fake tensors, torch makes the result again from the entry, with all of
its symbolic sizes, only to see whether the two have the same dispatch keys. These do not depend on sizes, so here that second
tensor has one element, and results of the same dtype, device and layout share it (a third of the time of torch.export on
SpeechT5).

`results_kept_when_repeated`: torch keeps the result of every operator on fake tensors, to find it when the same operator comes
again on the same sizes. To keep one takes as long as to compute it, and in a loop over numbers, whose slices grow, none comes
again. Here a result is kept when it was computed twice: repeated layers find theirs from the third on.

`lines_read_late`: torch notes the stack of each operator with the text of every line of it, most of them torch's own, which
are left out afterwards: here a line is looked up once, and its text is read when it is used.

`memory_formats_left_out`: for each node, torch notes in which memory formats its tensor is contiguous (`tensor_meta`), for
which it compares symbolic sizes and strides. torch.export and torch.onnx read `val` instead: here it is left out.

`sizes_computed_once`: for each operator torch computes the strides of results, and compares sizes to find out what broadcasts
and what is contiguous: tens of thousands of times in a trace, and nineteen times of twenty with the same two expressions as
before. Here the result of the first time is used again, in the same shape environment, until torch replaces a symbol there.
Results that depend on more than the two expressions (sums, and remainders, for which torch reads ranges) are computed each
time.

`multiples_known`: under `h % 32 == 0` the symbol of `h` is 32 times another. torch forgets such a rule: of a picture behind
five strides of 2 it keeps `(1 + (1 + (1 + (3 + h)//4)//2)//2)//2`, of which each condition and each proof is made. As a
multiple it is one symbol.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import CodeType, FrameType
from typing import Any
from weakref import WeakKeyDictionary

from anyshape.intercept.patching import patched

_FIRST = "computed for the first time"
_SETTERS = ("_set_cache_key", "_set_cache_key_for_shape_env")
_MAKE, _READ = "_get_output_info_for_cache_entry", "_output_from_cache_entry"
_KIND = ("dtype", "device", "layout", "requires_grad", "is_quantized", "is_conj", "is_neg")
_METHODS = ("eq", "ne", "ge", "gt", "le", "lt", "and_", "or_", "mul", "sub", "sym_max", "sym_min", "int_floordiv")


@contextmanager
def lines_read_late() -> Iterator[None]:
    """Enter around whatever traces a module."""
    from torch.fx import proxy
    from torch.utils import _traceback

    stacks = (vars(proxy), "CapturedTraceback", _Stacks())
    with patched([(vars(_traceback), "_extract_symbolized_tb", _extract_without_lines), stacks]):
        yield


class _Stacks:
    """In the place of torch's class of stacks, for the nodes of one trace."""

    def __init__(self) -> None:
        self._lines: dict[tuple[CodeType, int], traceback.FrameSummary] = {}

    def extract(self) -> _Stack:
        """The stack of the caller."""
        lines = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            key = frame.f_code, frame.f_lasti
            if key not in self._lines:
                self._lines[key] = _line_of(frame)
            lines.append(self._lines[key])
            frame = frame.f_back
        return _Stack(lines)


class _Stack:
    """Lines, the innermost first."""

    def __init__(self, lines: list[traceback.FrameSummary]) -> None:
        self._lines = lines

    def summary(self) -> traceback.StackSummary:
        """The lines, the outermost first."""
        return traceback.StackSummary.from_list(reversed(self._lines))  # type: ignore[arg-type]


def _line_of(frame: FrameType) -> traceback.FrameSummary:
    return traceback.FrameSummary(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, lookup_line=False)


@contextmanager
def memory_formats_left_out() -> Iterator[None]:
    """Enter around a trace with symbolic sizes."""
    from torch.fx.experimental import proxy_tensor

    with patched([(vars(proxy_tensor), "_extract_tensor_metadata", lambda value: None)]):
        yield


@contextmanager
def results_kept_when_repeated() -> Iterator[None]:
    """Enter around a trace with symbolic sizes."""
    from torch._subclasses import fake_tensor

    seen: set[Any] = set()
    own = fake_tensor.FakeTensorMode._make_cache_entry

    def make_entry(mode: Any, state: Any, key: Any, *args: Any) -> Any:
        if key in seen:
            return own(mode, state, key, *args)
        seen.add(key)
        raise fake_tensor._BypassDispatchCache(_FIRST)

    space = vars(fake_tensor)
    setters = [(space, name, _without_first(space[name])) for name in _SETTERS if name in space]
    with patched([(fake_tensor.FakeTensorMode, "_make_cache_entry", make_entry), *setters] if setters else []):
        yield


def _without_first(own: Any) -> Any:
    """A function that stores an entry, which stores none for a result that is not kept yet."""

    def store(cache: Any, key: Any, entry: Any) -> None:
        if getattr(entry, "reason", None) != _FIRST:
            own(cache, key, entry)

    return store


def _extract_without_lines(frames: Any, skip: int) -> traceback.StackSummary:
    """Like torch's own function; the text of a line is read when it is shown."""
    stack = traceback.StackSummary()
    for frame in reversed(frames[skip:]):
        stack.append(traceback.FrameSummary(frame["filename"], frame["line"], frame["name"], lookup_line=False))
    return stack


@contextmanager
def small_cache_checks() -> Iterator[None]:
    """Enter around `torch.export.export(..., strict=False)` or `make_fx`."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    make, read = (vars(FakeTensorMode).get(name) for name in (_MAKE, _READ))
    if make is None or read is None:  # another version of torch
        yield
        return
    made: list[Any] = []  # modes that make an entry right now
    shared: dict[Any, Any] = {}

    def make_entry(mode: Any, *args: Any, **kwargs: Any) -> Any:
        made.append(mode)
        try:
            return make(mode, *args, **kwargs)
        finally:
            made.pop()

    def read_entry(mode: Any, state: Any, entry: Any, key: Any, *called: Any) -> Any:
        """`called` is the operator and its arguments; torch 2.15 passes the arguments alone."""
        if not made or _has_unbacked_sizes(mode):
            return read(mode, state, entry, key, *called)
        (info,) = entry.output_infos
        kind = tuple(getattr(info.metadata, name) for name in _KIND)
        if kind not in shared:
            shared[kind] = read(
                mode, state, _with_one_element(entry, info), key, *[None for _ in called[:-1]], called[-1]
            )
        return shared[kind]

    with patched([(FakeTensorMode, _MAKE, make_entry), (FakeTensorMode, _READ, read_entry)]):
        yield


def _has_unbacked_sizes(mode: Any) -> bool:
    """Whether sizes without a value may be in an entry: torch leaves such an entry out if its result cannot be made."""
    return bool(mode.shape_env is not None and mode.shape_env.unbacked_symint_counter)


def _with_one_element(entry: Any, info: Any) -> Any:
    """The entry of a tensor with the same keys, that is no view and has one element."""
    metadata = replace(info.metadata, shape=(1,), stride=(1,), storage_offset=0, storage_bytes=None)
    return replace(entry, output_infos=(replace(info, metadata=metadata, view_idx=None),))


Method = Callable[[Any, Any], Any]


@contextmanager
def sizes_computed_once() -> Iterator[None]:
    """Enter around a trace with symbolic sizes."""
    from torch.fx.experimental.sym_node import SymNode

    known: dict[Any, Any] = {}
    names = [name for name in (f"_{each}" for each in _METHODS) if name in vars(SymNode)]
    with patched([(SymNode, name, _computed_once(name, vars(SymNode)[name], known)) for name in names]):
        yield


def _computed_once(name: str, own: Method, known: dict[Any, Any]) -> Method:
    """The method of torch's SymNode, which keeps its results in `known`."""
    from torch.fx.experimental.proxy_tensor import get_proxy_mode

    def compute(node: Any, other: Any) -> Any:
        environment = node.shape_env
        version = getattr(environment, "_replacements_version_counter", None)
        if version is None or not _is_plain(node, environment) or not _is_plain(other, environment):
            return own(node, other)
        if get_proxy_mode() is not None:  # the operation itself is recorded
            return own(node, other)
        # An entry holds its environment, so that no other one gets the same id.
        key = name, id(environment), version, node._expr, node.pytype, other._expr, other.pytype
        if key not in known:
            known[key] = own(node, other), environment
        return known[key][0]

    return compute


def _is_plain(node: Any, environment: Any) -> bool:
    """Whether a node has a value in this trace, and no part in torch's validation of guards."""
    return getattr(node, "shape_env", None) is environment and node._hint is not None and not node.fx_node


_multiples: WeakKeyDictionary[Any, dict[Any, tuple[Any, int]]] = WeakKeyDictionary()
"""For each shape environment: the symbols that were replaced, each with the new symbol and the number that it is times."""


def replace_by_multiple(size: Any, multiple: int) -> None:
    """Replace the symbol of a size by a multiple of a new one, in the shape environment of the trace that runs."""
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic

    node = getattr(size, "node", None)
    if node is None or not node._expr.is_Symbol or node._expr in node.shape_env.replacements:
        return
    symbol, environment = node._expr, node.shape_env
    source = ConstantSource(f"__part_of_{symbol.name}")
    # Else torch would take 0 and 1 for constants, and the new symbol for one of at least 2, without a condition on either.
    part = environment.create_symbol(
        node.hint // multiple, source, DimDynamic.DYNAMIC, None, do_not_specialize_zero_one=True
    )
    # torch assumes sizes of at least 2 in some places, and replaces a size only by what it assumes to be as large.
    is_size = symbol in environment.size_like
    environment.size_like.discard(symbol)
    environment._set_replacement(symbol, multiple * part, "a declared multiple")
    environment.size_like.update([symbol] if is_size else [])
    if environment.replacements.get(symbol) == multiple * part:
        _multiples.setdefault(environment, {})[symbol] = part, multiple
        # torch records this division as a step of the program, and writes the new symbol as the result of that step.
        _ = size // multiple


def multiple_of(size: Any) -> tuple[Any, int] | None:
    """The symbol of which the symbol of this open size is a multiple, and how many times; None without one."""
    return _multiples.get(size.node.shape_env, {}).get(size.node._expr)


def term_of(size: Any) -> Any:
    """The sympy term of an open size: its own symbol where that is a multiple of another one, so that it is read as an axis."""
    known = multiple_of(size)
    is_multiple = known is not None and size.node.expr == known[0] * known[1]
    return size.node._expr if is_multiple else size.node.expr


@contextmanager
def multiples_known() -> Iterator[None]:
    """Enter around torch.export: it finds the new symbols when it writes its guards."""
    from torch.fx.experimental.symbolic_shapes import EqualityConstraint, ShapeEnv

    own = ShapeEnv.produce_guards_verbose

    def produce_guards(environment: Any, *args: Any, equalities_inputs: Any = None, **kwargs: Any) -> Any:
        added = [symbol for symbol, _ in _multiples.get(environment, {}).values()]
        if added:
            if equalities_inputs is None:
                equalities_inputs = EqualityConstraint(
                    warn_only=False, source_pairs=[], derived_equalities=[], phantom_symbols=[], relaxed_sources=set()
                )
            equalities_inputs.phantom_symbols.extend(added)
        return own(environment, *args, equalities_inputs=equalities_inputs, **kwargs)

    with patched([(ShapeEnv, "produce_guards_verbose", produce_guards)]):
        yield
