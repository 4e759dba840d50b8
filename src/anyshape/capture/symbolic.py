"""The symbolic rung: torch.export with symbolic sizes, every guard kept.

Every open axis is Dim.AUTO, so that torch never raises on what it learns of the sizes: it records it, and the domain
decides. Sizes 0 and 1 are not set apart (`backed_size_oblivious`): `if x.shape[0] == 1` is a guard like any other.

What leaves no condition behind is noted (`noted_lines`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from anyshape.capture.guards import (
    asserted_numbers,
    collect_guards,
    decide_pins,
    environment_of,
    shape_environment,
    user_lines,
)
from anyshape.capture.layout_conditions import LayoutConditions, layout_conditions_apart
from anyshape.capture.noted_lines import noted_texts, notes_of
from anyshape.capture.rounded_floats import sizes_at_steps
from anyshape.capture.sympy_terms import outputs_of
from anyshape.capture.torch_export import (
    DERIVATIVES,
    Decompose,
    ModuleBelowAutograd,
    has_all_values,
    input_values,
    noted_transforms,
    open_axes,
    symbol_of,
    symbolic_sizes,
)
from anyshape.domain import Compare, Condition, Expr, Number, Ref, evaluate
from anyshape.inputs import Declared, flatten_outputs
from anyshape.inputs.declared import InputLeaf
from anyshape.intercept.needless_conditions import only_needed_conditions
from anyshape.intercept.open_numbers import run_open
from anyshape.intercept.quick_tracing import (
    multiple_of,
    multiples_known,
    replace_by_multiple,
    results_kept_when_repeated,
    sizes_computed_once,
)
from anyshape.intercept.real_numbers import floor_divisions_of_python
from anyshape.intercept.size_tensors import Rounding, small_constants_known
from anyshape.intercept.value_checks import recorded_checks
from anyshape.intercept.whole_quotients import quotients_rounded_as_integers
from anyshape.leaves import leaves
from anyshape.leaves.checked import masks_as_in_eager
from anyshape.leaves.lifted import control_flow_kept
from anyshape.modules.module_forms import FlatModule
from anyshape.modules.raised_errors import reads_values
from anyshape.modules.state import kept
from anyshape.processes.quiet import quiet_libraries
from anyshape.records.captured import Captured, Guard, Note, Region

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram

_MOST_FILLED = 10_000_000  # elements of all inputs


@dataclass(frozen=True)
class Stopped:
    """A capture that ended with an error, and the guards and notes that it met on its way there."""

    error: Exception
    guards: tuple[Guard, ...] = ()
    module: torch.nn.Module | None = None
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Traced:
    """A program that torch.export made of a module, and the paths of its outputs.

    Decomposing changes `program` in place. `decomposed` is the result; None before.
    """

    module: torch.nn.Module
    program: ExportedProgram
    paths: Sequence[str]
    layout: LayoutConditions
    asserted: frozenset[str] = frozenset()
    decomposed: ExportedProgram | None = None
    notes: tuple[Note, ...] = ()


Traces = dict[tuple[tuple[str, int], ...], Traced | Stopped]
"""What torch.export came to under one declaration, by the sizes. Its domain may become narrower: guards are decided later."""


def capture_symbolically(
    module: torch.nn.Module,
    declared: Declared,
    trace_sizes: Mapping[str, int],
    decompose: Decompose,
    traces: Traces | None = None,
) -> Captured | Stopped:
    """One program for the whole domain, with its guards decided; Stopped where torch.export or the module raises.

    What `traces` has of this module at these sizes is not made again, and what is made is added to it.
    """
    traces = {} if traces is None else traces
    found = trace_once(module, declared, trace_sizes, traces)
    if isinstance(found, Stopped):
        return found
    if found.decomposed is None:
        try:
            with _capturing(module, found.layout):
                found = replace(found, decomposed=decompose(found.program))
        except Exception as error:
            del traces[key_of_sizes(trace_sizes)]
            return Stopped(error)
        traces[key_of_sizes(trace_sizes)] = found
    assert found.decomposed is not None
    return read_capture(found, found.decomposed, declared, trace_sizes)


def trace_once(
    module: torch.nn.Module, declared: Declared, trace_sizes: Mapping[str, int], traces: Traces
) -> Traced | Stopped:
    """What `traces` has of this module at these sizes, or else what torch.export gives, which is added to it."""
    found = traces.get(key_of_sizes(trace_sizes))
    if found is None or found.module is not module:
        found = traces[key_of_sizes(trace_sizes)] = trace_symbolically(module, declared, trace_sizes)
    return found


def key_of_sizes(sizes: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """The key of these sizes in `Traces`."""
    return tuple(sorted(sizes.items()))


def trace_symbolically(module: torch.nn.Module, declared: Declared, trace_sizes: Mapping[str, int]) -> Traced | Stopped:
    """What torch.export gives at these sizes; Stopped where it or the module raises.

    A module that differentiates is traced once more, below autograd; one that maps over an axis where this is not followed.
    """
    with noted_transforms() as transforms:
        found = _trace(FlatModule, module, declared, trace_sizes)
    if isinstance(found, Traced) and not transforms & DERIVATIVES:
        return found
    if not transforms or (isinstance(found, Stopped) and reads_values(found.error)):
        return found
    below = _trace(ModuleBelowAutograd, module, declared, trace_sizes)
    return below if isinstance(below, Traced) and has_all_values(below.program) else found


def _trace(
    form: type[FlatModule], module: torch.nn.Module, declared: Declared, trace_sizes: Mapping[str, int]
) -> Traced | Stopped:
    flat = form(module, partial(_rebuild, declared), declared.call, flatten_outputs)
    try:
        values = _values_at(declared, trace_sizes)
    except MemoryError as error:
        return Stopped(error, module=module)
    stops: list[Stopped] = []
    layout = LayoutConditions()

    def export() -> ExportedProgram:
        try:
            return _export(flat, values, declared)
        except Exception as error:  # whatever torch raises; Ctrl-C goes through
            stops.append(Stopped(error, _guards_until_error(flat.seen.leaves, declared), module))
            raise

    roundings: list[Rounding] = []
    with _capturing(module, layout), floor_divisions_of_python(), noted_texts() as texts:
        try:
            program = run_open(module, export, roundings)
            layout.note_writes(program)
            asserted = asserted_numbers(program)
            symbols, _ = _symbols(input_values(program), declared)
            notes = tuple(notes_of(texts, roundings, symbols, trace_sizes))
            return Traced(module, program, flat.seen.paths, layout, asserted, notes=notes)
        except Exception as error:
            alike = (stop for stop in stops if str(stop.error) == str(error))  # the first run left more sizes open
            notes = tuple(notes_of(texts, roundings, {}, trace_sizes))
            return Stopped(error, next(alike, Stopped(error)).guards, module, notes)


def read_capture(
    traced: Traced, decomposed: ExportedProgram, declared: Declared, trace_sizes: Mapping[str, int]
) -> Captured:
    """The decomposed program with the guards of both, decided against the domain."""
    environment = shape_environment(decomposed) or shape_environment(traced.program)
    symbols, pinned = _symbols(input_values(traced.program), declared)
    guards = decide_pins(pinned, declared.domain)
    if environment is not None:
        also = traced.layout.which_matter(traced.program, environment)
        asserted = traced.asserted | asserted_numbers(traced.program)  # decomposing may give them other symbols
        guards = (*guards, *collect_guards(environment, symbols, declared.domain, also, asserted))
    within = tuple(guard.condition for guard in guards if guard.condition is not None and guard.status != "proved")
    notes = tuple(replace(note, within=within) for note in traced.notes)
    region = Region(
        decomposed,
        symbols,
        guards,
        dict(trace_sizes),
        notes=notes,
        steps=sizes_at_steps(decomposed, symbols, declared.domain),
    )
    return Captured("symbolic", (region,), outputs_of(traced.program, traced.paths, symbols, declared.domain))


@contextmanager
def _capturing(module: torch.nn.Module, layout: LayoutConditions) -> Iterator[None]:
    import torch

    with ExitStack() as stack:
        stack.enter_context(kept(module))
        stack.enter_context(symbolic_sizes())
        stack.enter_context(small_constants_known())
        stack.enter_context(results_kept_when_repeated())
        stack.enter_context(sizes_computed_once())
        stack.enter_context(quotients_rounded_as_integers())
        stack.enter_context(quiet_libraries())
        stack.enter_context(user_lines())
        stack.enter_context(layout_conditions_apart(layout))
        stack.enter_context(torch.no_grad())
        yield


def _guards_until_error(leaves: Sequence[Any], declared: Declared) -> tuple[Guard, ...]:
    """The guards of the shape environment that the inputs of the failed call belong to."""
    environment = environment_of(leaves)
    if environment is None or len(leaves) != len(declared.open_leaves):
        return ()
    symbols, pinned = _symbols(leaves, declared)
    return (*decide_pins(pinned, declared.domain), *collect_guards(environment, symbols, declared.domain))


def _export(flat: FlatModule, values: Sequence[Any], declared: Declared) -> ExportedProgram:
    import torch

    with ExitStack() as stack:
        stack.enter_context(leaves())
        stack.enter_context(control_flow_kept())
        stack.enter_context(masks_as_in_eager(flat.module))
        stack.enter_context(only_needed_conditions())
        stack.enter_context(recorded_checks())
        stack.enter_context(multiples_known())
        return torch.export.export(flat, tuple(values), dynamic_shapes=(open_axes(declared),), strict=False)


def _rebuild(declared: Declared, values: Sequence[Any]) -> Any:
    """The inputs of the module from the leaves of a trace, whose sizes are replaced by multiples first."""
    for value, leaf in zip(values, declared.open_leaves, strict=True):
        for size, expression in zip(getattr(value, "shape", ()), leaf.axes, strict=False):
            if isinstance(expression, Ref) and (multiple := declared.domain.dim(expression.name).multiple) > 1:
                replace_by_multiple(size, multiple)
    return declared.rebuild(values)


def _values_at(declared: Declared, sizes: Mapping[str, int]) -> list[Any]:
    """The inputs of a trace. Large ones are not filled: a trace reads no values, and memory that is not written to is not
    taken. Raises MemoryError where not even that can be had."""
    import torch

    if declared.elements(sizes) <= _MOST_FILLED:
        return [_as_input(value) for value in declared.open_values(declared.make(sizes, 0))]

    def sized(leaf: InputLeaf, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return torch.empty(leaf.shape(sizes), dtype=value.dtype, device=value.device)
        return _as_input(value) if leaf.number is None else evaluate(leaf.number, sizes)

    values = declared.open_values(declared.example)
    try:
        return [sized(leaf, value) for leaf, value in zip(declared.open_leaves, values, strict=True)]
    except RuntimeError as error:  # what torch raises for want of memory
        raise MemoryError(str(error)) from error


def _as_input(value: Any) -> Any:
    """A float would be baked in; as a 0-d tensor it is an input."""
    import torch

    return torch.tensor(value) if isinstance(value, float) else value


def _symbols(values: Sequence[Any], declared: Declared) -> tuple[dict[str, Expr], list[Condition]]:
    """Each size symbol of these inputs in the user's dims, and what holds where an open axis got no symbol, or a multiple."""
    import torch

    symbols: dict[str, Expr] = {}
    pinned: list[Condition] = []
    for value, leaf in zip(values, declared.open_leaves, strict=True):
        pairs = zip(value.shape, leaf.axes, strict=True) if isinstance(value, torch.Tensor) else [(value, leaf.number)]
        for size, expression in pairs:
            symbol = symbol_of(size)
            if expression is None or isinstance(expression, Number):
                continue
            if symbol is not None:
                symbols[symbol] = expression
                if (known := multiple_of(size)) is not None:
                    part, multiple = known
                    symbols[part.name] = expression // multiple
                    pinned.append(Compare("==", expression % multiple, Number(0)))
            elif isinstance(size, int):
                pinned.append(Compare("==", expression, Number(size)))
    return symbols, pinned
