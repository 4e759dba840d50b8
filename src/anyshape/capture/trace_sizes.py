"""Keep the sizes of a trace from deciding what is captured.

choose_trace_sizes    sizes to trace at: distinct, and at least 2
without_accidents     trace again where one of them happens to equal a number of the model
empty_sizes_open      symbols that may be 0, where the domain has 0
copy_program          a program with nodes of its own: a capture is kept, and later passes change its nodes in place
"""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch.fx import GraphModule

from anyshape.capture.symbolic import Stopped
from anyshape.domain import (
    Compare,
    Condition,
    Domain,
    Number,
    Ref,
    Sizes,
    dims_of,
    evaluate,
    holds,
    negate,
    smallest_known_point,
)
from anyshape.domain.telling_points import primes_between
from anyshape.inputs import Declared
from anyshape.intercept.patching import patched
from anyshape.records.captured import Captured

if TYPE_CHECKING:
    from torch.export import ExportedProgram


_PRIMES = primes_between(3, 31)
_ELEMENTS = 2_000_000
_TRIES = 60


def choose_trace_sizes(
    declared: Declared, answers: Callable[[Mapping[str, int]], bool], *conditions: Condition
) -> dict[str, int] | None:
    """The least accidental sizes that meet the conditions and at which the module answers; None where there are none."""
    candidates = list({tuple(point.items()): point for point in _candidates(declared)}.values())
    points = [sizes for sizes in candidates if all(holds(part, sizes) for part in conditions)]
    points.sort(key=lambda sizes: _accidents(declared, sizes))
    for sizes in points[:_TRIES]:
        if answers(sizes):
            return sizes
    example = dict(declared.example_sizes)
    if declared.domain.contains(example) and all(holds(part, example) for part in conditions):
        return example
    return next((sizes for sizes in _solved(declared, candidates, conditions) if answers(sizes)), None)


@dataclass(frozen=True)
class SparedCalls:
    """Sizes at which the module is not called before they are traced. `is_dear`: a call takes long there; `is_traced`: there
    is a trace of them."""

    is_dear: Callable[[Sizes], bool] = lambda sizes: False
    is_traced: Callable[[Sizes], bool] = lambda sizes: False

    def answers_near(self, smallest: Sizes, answers: Callable[[Sizes], bool]) -> Callable[[Sizes], bool]:
        """Whether the module answers; where a call is dear, whether it was traced, or answers at the smallest sizes of a part.

        Where it does not answer at the sizes of a trace nevertheless, the trace fails, or comparisons show it.
        """

        def answers_there(sizes: Sizes) -> bool:
            is_spared = self.is_dear(sizes) and (self.is_traced(sizes) or answers(smallest))
            return is_spared or answers(sizes)

        return answers_there


def _solved(
    declared: Declared, good: Sequence[Mapping[str, int]], conditions: Sequence[Condition]
) -> Iterator[dict[str, int]]:
    """Points that the solver finds: one dim as small as it may be and the others as at a good point, then all small."""
    names = declared.domain.names
    usual = min(good, key=lambda sizes: _accidents(declared, sizes), default=declared.example_sizes)
    kept = [[Compare("==", Ref(other), Number(usual[other])) for other in names if other != name] for name in names]
    for pins in (*kept, [Compare(">=", Ref(name), Number(2)) for name in names], []):
        found = smallest_known_point(declared.domain, *conditions, *pins)
        if found is not None:
            yield found


def _accidents(declared: Declared, sizes: Mapping[str, int]) -> int:
    """How many coincidences these sizes would bring into a trace."""
    constants = [axis.value for leaf in declared.leaves for axis in leaf.axes if isinstance(axis, Number)]
    values = list(sizes.values())
    open_axes = {
        axis: evaluate(axis, sizes) for leaf in declared.leaves for axis in leaf.axes if not isinstance(axis, Number)
    }
    small = sum(10 for size in open_axes.values() if size < 2) + sum(10 for size in values if size < 2)
    equal = len(open_axes) - len(set(open_axes.values())) + len(values) - len(set(values))
    like_constant = sum(1 for size in set(open_axes.values()) if size in constants)
    return small + 5 * equal + like_constant


def _candidates(declared: Declared) -> Iterator[dict[str, int]]:
    domain = declared.domain
    options = {name: list(_options(domain, name, declared.example_sizes.get(name, 3))) for name in domain.names}
    chooser = random.Random(0)
    products = itertools.islice(itertools.product(*(options[name][:4] for name in domain.names)), 400)
    drawn = (tuple(chooser.choice(options[name]) for name in domain.names) for _ in range(400))
    for values in itertools.chain(products, drawn):
        sizes = dict(zip(domain.names, values, strict=True))
        if domain.contains(sizes) and declared.elements(sizes) <= _ELEMENTS:
            yield sizes


def _options(domain: Domain, name: str, example: int) -> Iterator[int]:
    dim = domain.dim(name)
    wanted = (example, *_PRIMES, example + 1, example + 2, 2 * example, 3 * example, 5 * example, 2, 4, 6)
    found = False
    for value in dict.fromkeys(wanted):
        size = value * dim.multiple if value % dim.multiple else value
        if dim.min <= size and (dim.max is None or size <= dim.max):
            found = True
            yield size
    if not found:
        yield example


def empty_sizes_open() -> AbstractContextManager[None]:
    """Within this, symbols of sizes are not assumed to be positive."""
    from torch.fx.experimental import symbolic_shapes
    from torch.utils._sympy.symbol import SymT, make_symbol

    def make_size(prefix: SymT, number: int, **assumed: Any) -> Any:
        if prefix == SymT.SIZE:
            assumed["positive"] = None  # not "nonnegative", for which torch divides inequalities by sizes that may be 0
        return make_symbol(prefix, number, **assumed)

    return patched([(symbolic_shapes, "make_symbol", make_size)])


def without_accidents(
    first: Captured,
    declared: Declared,
    capture: Callable[[Sizes], Captured | Stopped],
    answers: Callable[[Sizes], bool],
) -> Captured:
    """The first capture, or one at other sizes that holds a size inside the program to a number at fewer places."""
    accidents = _find_accidents(first)
    if not accidents:
        return first
    sizes = choose_trace_sizes(declared, answers, *map(negate, accidents))
    if sizes is None or any(holds(each, sizes) for each in accidents):
        return first
    other = capture(sizes)
    if isinstance(other, Stopped) or len(_find_accidents(other)) >= len(accidents):
        return first
    return other


def _find_accidents(captured: Captured) -> list[Condition]:
    """Conditions of torch's own, not proved, that an expression equals a number; none where the user's code has one as well.

    An expression that equals the number at one size of each dim only is no accident: a loop or a constant is behind it.
    """
    pins = [
        guard
        for guard in captured.guards
        if guard.status != "proved"
        and isinstance(guard.condition, Compare)
        and guard.condition.op == "=="
        and isinstance(guard.condition.right, Number)
    ]
    traced_at = captured.regions[0].traced_at
    conditions = [guard.condition for guard in pins if guard.condition is not None]
    if any(guard.by_user for guard in pins) or not all(_holds_nearby(each, traced_at) for each in conditions):
        return []
    return list(dict.fromkeys(conditions))


def _holds_nearby(condition: Condition, sizes: Sizes) -> bool:
    """Whether the condition also holds where one of its dims is larger or smaller by 1."""
    moved = (
        {**sizes, name: sizes[name] + step} for name in dims_of(condition) for step in (1, -1) if sizes[name] + step > 0
    )
    return any(holds(condition, each) for each in moved)


def copy_program(program: ExportedProgram) -> ExportedProgram:
    """The same program with nodes of its own, those of nested graphs included."""
    copied = copy.copy(program)
    copied._graph_module = _copy_graph(program.graph_module)
    copied._graph_signature = copy.deepcopy(program.graph_signature)
    copied._state_dict = dict(program.state_dict)
    copied._constants = dict(program.constants)
    return copied


def _copy_graph(module: GraphModule) -> GraphModule:
    copied = GraphModule(module, copy.deepcopy(module.graph), class_name=type(module).__name__)
    copied.meta.update(module.meta)
    for name, child in module.named_children():
        if isinstance(child, GraphModule) and hasattr(copied, name):
            setattr(copied, name, _copy_graph(child))
    return copied
