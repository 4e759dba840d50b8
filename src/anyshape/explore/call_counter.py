"""Count the operators of calls at a few sizes.

few operators     a call at small sizes really runs; another one on tensors without memory
many operators    tensors without memory take a millisecond for each operator: where a call with all other dims at their
                  smallest sizes is quick, it really runs, and the counts grow from the example's in proportion
a call that raises with floating-point inputs would raise on tensors without memory as well, and is not made there

What the counts are at larger sizes is predicted in `count_scaling`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple
from functools import cached_property
from typing import TYPE_CHECKING, Any

from anyshape.domain import Sizes
from anyshape.explore.count_scaling import Scaling
from anyshape.findings import AnyshapeError
from anyshape.inputs import Declared, Inputs, flatten_outputs
from anyshape.intercept.operation_counts import Counted, count_call, count_real_call, raises_early
from anyshape.intercept.patching import Patch, patched, uncached_functions
from anyshape.modules.state import ModuleState
from anyshape.processes import is_own_process
from anyshape.processes.workers import Worker, WorkerDied

if TYPE_CHECKING:
    import torch


_LONG = 48  # operators
_MOST_OPERATORS = 800  # of a call that is counted only to estimate others
_MOST_COUNTED_INPUTS = 4_000_000
_SMALL = 64
_MOST_COUNTED = (
    30_000_000_000  # operations of a call that really runs only to be counted: tensors without memory take as long
)
_MOST_COUNTED_ELEMENTS = 100_000_000
_CALL_S = 30.0  # of a call that is made only to be counted
_STILL = 50  # a change of one part in so many is none


OutputSamples = tuple[tuple[str, Any], ...]
"""Paths of outputs with values of the same dtypes."""


class CallCounter:
    """Counts calls of one module. The module's state is put back after each of them."""

    def __init__(self, module: torch.nn.Module, declared: Declared) -> None:
        self._module = module
        self._declared = declared
        self._counted: dict[tuple[tuple[str, int], ...], Counted | None] = {}
        self._probed: dict[tuple[int, int, tuple[tuple[str, int], ...]], bool] = {}
        self._unread: frozenset[int] = frozenset()
        self._example_outputs: OutputSamples | None = None
        self._worker = (
            Worker(lambda request: request[0](self, *request[1:]), seconds=_CALL_S) if is_own_process() else None
        )

    @cached_property
    def base(self) -> Counted | None:
        """The counts at the example's sizes; None where they cannot be counted."""
        return self._count(self._declared.example_sizes, 1 << 40, lambda: True)

    @property
    def unread_inputs(self) -> frozenset[int]:
        """The places of inputs that no operator takes at the example's sizes: only their sizes are read, or nothing."""
        return frozenset() if self.base is None else self._unread

    @property
    def example_outputs(self) -> OutputSamples | None:
        """The outputs at the example's sizes; None unless the module really ran for the counts, drew and wrote nothing."""
        return None if self.base is None else self._example_outputs

    @property
    def is_long(self) -> bool:
        """Whether a call has many operators."""
        return self.base is not None and self.base.operators >= _LONG

    def count_along(self, name: str, size: int, known: Scaling) -> Counted | None:
        """The counts with this dim at this size and the others as in the example; None where they cannot be counted.

        `known` are the counts at other sizes of the dim.
        """
        assert self.base is not None
        sizes = {**self._declared.example_sizes, name: size}
        most = max(_MOST_OPERATORS, 4 * self.base.operators)
        if self.is_long and size > self._declared.example_sizes[name]:
            found = self._count_beside(name, size, known)
            if found is not None:
                return found
        return self._count(sizes, most, lambda: self._is_quickly_run(sizes))

    def refuses_early(self, sizes: Sizes, most_operations: int, per_element: int) -> bool:
        """Whether a call at these sizes raises within so many operations; it is stopped after them, and made once."""
        key = most_operations, per_element, tuple(sorted(sizes.items()))
        if key not in self._probed:  # rules are learned several times, and the same sizes are probed for each
            inputs = self._make(sizes)
            self._probed[key] = inputs is not None and self.refuses_inputs_early(inputs, most_operations, per_element)
        return self._probed[key]

    def refuses_inputs_early(self, inputs: Inputs, most_operations: int, per_element: int) -> bool:
        """Whether a call with these inputs raises within so many operations; the module may write into the inputs."""
        if self._worker is None:
            return self._raises_early(inputs, most_operations, per_element)
        try:
            return bool(self._worker.call((CallCounter._raises_early, inputs, most_operations, per_element)))
        except WorkerDied:
            return True

    def _raises_early(self, inputs: Inputs, most_operations: int, per_element: int) -> bool:
        with self._put_back():
            return raises_early(lambda: self._declared.call(self._module, inputs), most_operations, per_element)

    def _count_beside(self, name: str, size: int, known: Scaling) -> Counted | None:
        """The same from calls with all other dims at their smallest; None where these are not legal or not quick.

        Beside a part that does not depend on the dim, counts are a product of what the dim and what the others give. So
        a step of the dim changes them in the same proportion, whatever the sizes of the others are.
        """
        assert self.base is not None
        example, (first, lowest) = self._declared.example_sizes[name], known.counted[0]
        below, at_example = self._count_smallest(name, first), self._count_smallest(name, example)
        if first == example or below is None or at_example is None or not _is_quick(at_example, known, size, self.base):
            return None
        found = self._count_smallest(name, size)
        return None if found is None else _in_proportion((lowest, self.base), (below, at_example), found)

    def _count_smallest(self, name: str, size: int) -> Counted | None:
        """The counts with this dim at this size and all others at their smallest."""
        assert self.base is not None
        dims = self._declared.domain.dims
        sizes = {dim.name: -(-max(1, dim.smallest) // dim.multiple) * dim.multiple for dim in dims} | {name: size}
        return self._count(sizes, max(_MOST_OPERATORS, 4 * self.base.operators), lambda: True)

    def _is_quickly_run(self, sizes: Sizes) -> bool:
        """Whether a call at these sizes, which differ from the example's in one dim, may run only to be counted."""
        if self.base is None:
            return False
        ratios = (size / max(1, self._declared.example_sizes[name]) for name, size in sizes.items())
        larger, is_small = max((1.0, *ratios)), max((0, *sizes.values())) <= _SMALL
        grown = larger if is_small else larger**2
        is_light = is_small or self.base.computed * grown <= _MOST_COUNTED_ELEMENTS
        return self.base.multiplied * grown <= _MOST_COUNTED and is_light

    def _count(self, sizes: Sizes, most_operators: int, is_quick: Callable[[], bool]) -> Counted | None:
        """The counts of a call at these sizes, which is made once."""
        key = tuple(sorted(sizes.items()))
        if key not in self._counted:
            runs = is_quick()
            if self._worker is None or not runs or sizes == self._declared.example_sizes:
                self._counted[key] = self._count_once(sizes, most_operators, runs)
            else:
                self._counted[key] = self._count_apart(sizes, most_operators)
        return self._counted[key]

    def _count_apart(self, sizes: Sizes, most_operators: int) -> Counted | None:
        """The counts of a call at sizes that nobody has tried yet, made in a worker."""
        assert self._worker is not None
        try:
            found: Counted | None = self._worker.call((CallCounter._count_once, sizes, most_operators, True))
        except WorkerDied:
            return None
        return found

    def _count_once(self, sizes: Sizes, most_operators: int, runs: bool) -> Counted | None:
        declared, module = self._declared, self._module
        is_legal = declared.domain.contains(sizes)
        if not is_legal or (declared.elements(sizes) > _MOST_COUNTED_INPUTS and sizes != declared.example_sizes):
            return None
        inputs = self._make(sizes)
        if inputs is None:
            return None
        values = declared.open_values(inputs)
        outputs: list[Any] = []

        def call() -> Any:
            outputs.append(declared.call(module, inputs))
            return outputs[0]

        is_example = False
        with self._put_back() as traces, patched(self._uncached):
            unread = {id(value) for value in values}
            found = count_real_call(call, most_operators, unread) if runs else None
            is_example = found is not None and sizes == declared.example_sizes
            if is_example:
                self._unread = frozenset(index for index, value in enumerate(values) if id(value) in unread)
            if found is None and (not runs or any(map(_may_be_illegal, values))):
                found = count_call(lambda faked: declared.call(module, declared.rebuild(faked)), values, most_operators)
        if is_example:
            self._example_outputs = None if any(traces) else _samples_of(outputs[0])
        return found

    def _make(self, sizes: Sizes) -> Inputs | None:
        try:
            return self._declared.make(sizes, 0)
        except Exception:  # a function of sizes need not answer at every size
            return None

    @cached_property
    def _state(self) -> ModuleState:
        return ModuleState(self._module)

    @cached_property
    def _uncached(self) -> list[Patch]:
        return list(uncached_functions(self._module))

    @contextmanager
    def _put_back(self) -> Iterator[list[Any]]:
        """Within this the module is in eval mode and may change; afterwards it is as it was before the first count.

        Gives a list: afterwards it has whether random numbers were drawn, and what was written. It is found by the one look
        behind the call, since a second one would show nothing, and parameters that show nothing are no longer looked at.
        """
        state = self._state
        state.random.restore()
        self._module.eval()
        traces: list[Any] = []
        try:
            yield traces
        finally:
            traces.append(state.random.is_advanced())
            traces.append(state.restore())


def _may_be_illegal(value: Any) -> bool:
    """Whether a module may raise because of the values that were drawn, and not because of the sizes: integers, flags."""
    return not getattr(value, "is_floating_point", lambda: False)()


def _samples_of(outputs: Any) -> OutputSamples | None:
    """A tensor without elements for each tensor; None for outputs that no file has."""
    try:
        leaves = flatten_outputs(outputs)
    except AnyshapeError:
        return None
    return tuple((path, leaf.new_empty(0) if hasattr(leaf, "new_empty") else leaf) for path, leaf in leaves)


def _is_quick(at_example: Counted, known: Scaling, size: int, base: Counted) -> bool:
    """Whether a call that has the counts `at_example` at the example's size may run at this size only to be counted."""
    multiplied = at_example.multiplied * known.ratio(size, base, "multiplied")
    computed = at_example.computed * known.ratio(size, base, "computed")
    return multiplied <= _MOST_COUNTED and computed <= _MOST_COUNTED_ELEMENTS


def _in_proportion(ends: tuple[Counted, Counted], steps: tuple[Counted, Counted], beyond: Counted) -> Counted | None:
    """Counts at which `ends` arrive by the step by which `steps` arrive at `beyond`; None if only one of both has a step.

    A few operators that only the smallest sizes spare (DETR: 3 of 1421) are no step.
    """
    found = []
    for low, high, start, end, far in zip(*map(astuple, (*ends, *steps, beyond)), strict=True):
        is_still = low == high and abs(end - start) * _STILL <= end
        if not is_still and (start == end or low == high):
            return None
        found.append(high if is_still else high + (far - end) * (high - low) // (end - start))
    return Counted(*(max(0, each) for each in found))
