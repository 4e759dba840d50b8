"""Every condition under which a captured program holds, in the user's dims and with the user's line.

torch keeps them in its shape environment and names a line of its own; `user_lines` makes it remember the user's. A guard
that we cannot translate is kept as text with no condition: unknown, never assumed.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any

from anyshape.capture.failing_sizes import note_few_failures, sizes_against
from anyshape.capture.sympy_terms import condition_of
from anyshape.domain import Compare, Condition, Domain, Expr, Number, decide, find_bound
from anyshape.domain.dims import filled
from anyshape.domain.solver_questions import divide_multiples
from anyshape.findings import Source
from anyshape.intercept.patching import patched
from anyshape.modules.user_code import (
    acts_for_caller,
    is_users,
    make_source,
    only_passes_on,
    runs_users_code,
    source_of_running_code,
    source_of_stack_text,
)
from anyshape.records.captured import Guard

__only_passes_on__ = True

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.fx import Node

_NO_SIZE = sys.maxsize // 2  # torch's bound of what follows from values; no memory holds so many elements


@contextmanager
def user_lines() -> Iterator[None]:
    """Within this, guards that torch records carry the user's line where the stack shows one."""
    from torch._guards import SLoc
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    original = ShapeEnv._get_stack_summary

    def with_user_line(self: Any, *args: Any, **kwargs: Any) -> Any:
        location, extra = original(self, *args, **kwargs)
        source = source_of_running_code() or _source_of_current_node()
        if source is None:
            return location, extra
        return SLoc(location.framework_loc, _UserLine(source, _asked_by_user())), extra

    with patched([(ShapeEnv, "_get_stack_summary", with_user_line)]):
        yield


class _UserLine(str):
    """What torch takes for a formatted frame, holding the facts."""

    source: Source
    by_user: bool

    def __new__(cls, source: Source, by_user: bool) -> _UserLine:
        line = super().__new__(cls, str(source))
        line.source = source
        line.by_user = by_user
        return line


def _asked_by_user() -> bool:
    """Whether the user's own code looks at a size, rather than an operator of torch below it.

    What the standard library compares for it (`Kind((h, w))` of an Enum, `bisect`) is the user's question as well.
    """
    from torch.fx.experimental.symbolic_shapes import uninteresting_files

    between = uninteresting_files()  # "<string>" is one of them: the `__eq__` of a dataclass is in one of that name
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not runs_users_code(frame):
        if not (frame.f_code.co_filename in between or only_passes_on(frame) or acts_for_caller(frame)):
            return False
        frame = frame.f_back
    return frame is not None


def _source_of_current_node() -> Any:
    """While a captured graph is decomposed, no user frame runs, but the node has its own."""
    from torch.fx import traceback as fx_traceback

    return source_of_stack_text(fx_traceback.get_current_meta().get("stack_trace"))


def shape_environment(program: ExportedProgram) -> Any | None:
    """The shape environment of a program; None when nothing in it has a symbolic size."""
    values = (node.meta.get("val") for node in program.graph.nodes)
    return environment_of(
        item for value in values for item in (value if isinstance(value, (tuple, list)) else (value,))
    )


def environment_of(values: Iterable[Any]) -> Any | None:
    """The shape environment of these tensors and sizes; None when none of them is symbolic."""
    import torch

    for value in values:
        for size in value.shape if isinstance(value, torch.Tensor) else (value,):
            if isinstance(size, (torch.SymInt, torch.SymFloat, torch.SymBool)):
                return size.node.shape_env
    return None


def asserted_numbers(program: ExportedProgram) -> frozenset[str]:
    """The symbols of numbers and truth values that a program reads from tensors only to assert something about them.

    `torch._check(mask.any().item())` raises in the user's module too: it is no condition under which the program holds.
    """
    import torch

    found: set[str] = set()
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.target in (torch.ops.aten.item.default, torch.ops.aten._local_scalar_dense.default) and (
            isinstance(value, (torch.SymBool, torch.SymInt, torch.SymFloat)) and _is_only_asserted(node)
        ):
            unsimplified = value.node._expr  # `expr` has 1 for a symbol that was asserted
            found |= {symbol.name for symbol in unsimplified.free_symbols}
    return frozenset(found)


def _is_only_asserted(node: Node) -> bool:
    """Whether all that follows from a value are assertions."""
    import torch

    if node.target in (torch.ops.aten._assert_scalar.default, torch.ops.aten._assert_async.msg):
        return True
    return node.op == "call_function" and bool(node.users) and all(map(_is_only_asserted, node.users))


def collect_guards(
    environment: Any,
    symbols: Mapping[str, Expr],
    domain: Domain,
    also: Iterable[tuple[Any, Any]] = (),
    asserted: frozenset[str] = frozenset(),
) -> tuple[Guard, ...]:
    """All guards, deferred assertions and assumed ranges of a shape environment, decided against the domain.

    `also` are further terms with torch's records of their lines. Terms in symbols of `asserted` alone are left out.
    """
    found: dict[Condition | str, Guard] = {}
    values = frozenset(map(id, _asserted_of_values(environment)))
    for term, location in (*_terms(environment), *also):
        if term.free_symbols and {symbol.name for symbol in term.free_symbols} <= asserted:
            continue
        condition = condition_of(term, symbols)
        condition = condition if condition is None else divide_multiples(condition, domain)
        user_line = getattr(location, "maybe_user_loc", None)
        source = getattr(user_line, "source", None) or _framework_source(location)
        key = condition if condition is not None else str(term)
        if key not in found:
            by_user = getattr(user_line, "by_user", False)
            guard = Guard(condition, str(term), source, by_user, is_of_values=id(term) in values)
            if condition is None and not guard.is_of_values:
                guard = _tried(guard, sizes_against(term, symbols, domain, by_user=by_user))
            found[key] = guard
    for symbol, expression in symbols.items():
        for condition, location in _assumed_range(environment, symbol, expression):
            if condition not in found and not any(_same_bound(condition, known) for known in found):
                user_line = getattr(location, "maybe_user_loc", None)
                source = getattr(user_line, "source", None)
                found[condition] = Guard(condition, "", source, False)
    return decide_guards(found.values(), domain)


def _tried(guard: Guard, against: Sequence[Mapping[str, int]]) -> Guard:
    if not against:
        return guard
    return replace(guard, status="refuted", counterexample=against[0], further=tuple(against[1:]))


def _same_bound(condition: Condition, known: Condition | str) -> bool:
    """`b <= 99` is `b < 100`: torch keeps both."""
    return (
        not isinstance(known, str) and find_bound(condition) is not None and find_bound(condition) == find_bound(known)
    )


def decide_pins(conditions: Iterable[Condition], domain: Domain) -> tuple[Guard, ...]:
    """Sizes that the program holds as constants, with no line to blame, decided against the domain.

    At other sizes the program does not take the inputs, so they split regions as the user's conditions do.
    """
    return decide_guards((Guard(each, "", None, by_user=True) for each in dict.fromkeys(conditions)), domain)


def decide_guards(guards: Iterable[Guard], domain: Domain) -> tuple[Guard, ...]:
    """The guards of one program with their status in the domain."""
    return note_few_failures([_decided(guard, domain) for guard in guards], domain)


def _decided(guard: Guard, domain: Domain) -> Guard:
    if guard.condition is None:
        return guard
    decision = decide(domain, guard.condition)
    filled_in = None if decision.proved else _filled_counterexample(guard.condition, domain)
    against = [sizes for sizes in (filled_in, decision.counterexample) if sizes]
    decided = replace(guard, status=decision.status, counterexample=None, further=(), has_few_failures=False)
    return replace(decided, counterexample=against[0], further=tuple(against[1:])) if against else decided


def _filled_counterexample(condition: Condition, domain: Domain) -> Mapping[str, int] | None:
    """The smallest one without an empty dim, if dims may be empty: at a size of 0 programs are equal whatever they compute."""
    not_empty = filled(domain)
    return decide(domain.with_relations(*not_empty), condition).counterexample if not_empty else None


def _terms(environment: Any) -> Iterator[tuple[Any, Any]]:
    for guard in environment.guards:
        yield guard.expr, guard.sloc
    for assertions in environment.deferred_runtime_asserts.values():
        for assertion in assertions:
            yield assertion.expr, None


def _asserted_of_values(environment: Any) -> Iterator[Any]:
    """The assertions about numbers that the program reads from tensors."""
    from torch.utils._sympy.symbol import SymT, symbol_is_type

    for assertions in environment.deferred_runtime_asserts.values():
        for assertion in assertions:
            if any(symbol_is_type(each, SymT.UNBACKED_INT) for each in assertion.expr.free_symbols):
                yield assertion.expr


def _framework_source(location: Any) -> Any:
    frame = getattr(location, "framework_loc", None)
    if isinstance(frame, traceback.FrameSummary) and is_users(frame.filename):
        return make_source(frame.filename, frame.lineno or 0, frame.name)
    return None


def _assumed_range(environment: Any, symbol: str, expression: Expr) -> Iterator[tuple[Condition, Any]]:
    """What torch takes for granted of a symbol beside its guards: its range, and its replacement."""
    import sympy
    from torch.utils._sympy.numbers import int_oo

    variable = next((known for known in environment.var_to_range if known.name == symbol), None)
    if variable is None:
        return
    bounds = environment.var_to_range[variable]
    where = environment.var_to_range_sloc.get(variable)
    if bounds.lower not in (-int_oo, int_oo) and int(bounds.lower) > 0:
        yield Compare(">=", expression, Number(int(bounds.lower))), getattr(where, "lower", None)
    if bounds.upper not in (-int_oo, int_oo, sympy.oo) and int(bounds.upper) < _NO_SIZE:
        yield Compare("<=", expression, Number(int(bounds.upper))), getattr(where, "upper", None)
