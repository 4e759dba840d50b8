"""Estimate the work of a call at given sizes, from counts at a few sizes of each dim.

work = elements of all tensors that the call makes + 100 for each element of inputs and answers + 10_000 for each operator

An element of an input or an answer is dear: it is drawn, copied, doubled, sent to or from the file's process and compared.

operations = multiplications and additions + 75 for each element that is no view + 7_500 for each element of inputs and answers
             + 750_000 for each operator + 10 for each byte of weights: some 75 thousand million are a second of one core

The work decides how far comparisons go and does not see that products of matrices take time; the operations see it, and
decide how many comparisons are in proportion to the export.

The counts are made at the example's sizes and with one dim at a time at 64, 256, 1024, ..., each once (see `call_counter`);
none beyond 256 where those before are on a quadratic. Between two counts the estimate is a power of the size, beyond the
last one it continues with the same power. So the estimate is continuous, and the same on every machine.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from anyshape.domain import Sizes
from anyshape.explore.call_counter import CallCounter, OutputSamples
from anyshape.explore.count_scaling import STEEPEST, Count, Scaling, next_counted_size, predict_counts
from anyshape.inputs import Declared, Inputs
from anyshape.intercept.operation_counts import Counted
from anyshape.modules.raised_errors import find_table_rows
from anyshape.records.runs import CostTable, Rates

if TYPE_CHECKING:
    import torch


CHEAP = 40_000_000  # work of most comparisons, so that thirty of them take a few seconds
AFFORDABLE = 2_000_000_000  # work of one of a few comparisons: some seconds
MOST_ELEMENTS = 500_000_000  # of all tensors of one call together, of which only some are alive at a time
WORK_PER_SECOND = 250_000_000  # of eager, eager in doubles and the file together, on a slow machine
USUAL_BUDGET_S = 60.0

OPERATIONS_PER_SECOND = 75_000_000_000  # of one core: what counts of operations mean as a time
EXPORT_S, EXPORT_S_PER_OPERATOR, EXPORT_S_PER_BYTE = 0.5, 0.006, 2e-9  # capture, translation, writing of weights
COMPARING_SHARE = 0.5  # of the rest of the export

MEMORY, TIME = "memory bound", "time limit"  # how the words of `excess` begin

_NO_LIMIT = 1 << 62
_FEW_TRACES, _TRACED_OPERATORS = 8, 4_000  # a trace takes some milliseconds for each operator
_EXCHANGED = 100  # the work of an element of an input or an answer
_OPERATOR = 10_000  # the work of calling an operator, however few elements it makes
_PER_BYTE_OF_WEIGHTS = 10  # operations
_PROBED = 4_000_000_000  # operations of a call that is stopped early
_PROBED_ELEMENTS = 4  # times the memory bound, for the whole call
_MANY_CALLS, _LONG = 100, 2 * OPERATIONS_PER_SECOND
_PER_ELEMENT, _PER_EXCHANGED, _PER_OPERATOR = 75, 7_500, 750_000  # operations


class Costing:
    """The estimated work of calls of one module, by sizes."""

    def __init__(
        self, module: torch.nn.Module, declared: Declared, budget_s: float = USUAL_BUDGET_S, *, thorough: bool = False
    ) -> None:
        self._module = module
        self._declared = declared
        self._budget_s = budget_s
        self.is_thorough = thorough
        self._counter = CallCounter(module, declared)
        self._scalings: dict[str, Scaling] = {}
        self._exhausted: set[str] = set()
        self._ratios: dict[tuple[str, int, str, int], float] = {}

    def __call__(self, sizes: Sizes) -> int:
        """The work of one call."""
        operators = int(self._estimate(sizes, "operators"))
        return self.elements(sizes) + _EXCHANGED * self.exchanged(sizes) + _OPERATOR * operators

    def elements(self, sizes: Sizes) -> int:
        """The elements of all tensors that one call makes, its inputs included."""
        return self._declared.elements(sizes) + int(self._estimate(sizes, "elements"))

    def exchanged(self, sizes: Sizes) -> int:
        """The elements of the inputs and of the answer of one call."""
        return self._declared.elements(sizes) + int(self._estimate(sizes, "answered"))

    def operations(self, sizes: Sizes) -> int:
        """The operations of one call of the module."""
        multiplied = int(self._estimate(sizes, "multiplied")) if self._multiplies else 0
        operators = int(self._estimate(sizes, "operators"))
        computed = int(self._estimate(sizes, "computed"))
        elements = _PER_ELEMENT * computed + _PER_EXCHANGED * self.exchanged(sizes)
        return multiplied + elements + _PER_OPERATOR * operators + _PER_BYTE_OF_WEIGHTS * self._weights

    def table(self) -> CostTable | None:
        """The counts so far, from which the work at any sizes can be estimated elsewhere; nothing is counted for it.

        None where a dim has fewer than two counts: nobody knows how the work grows with it.
        """
        along = {name: tuple(scaling.counted) for name, scaling in self._scalings.items()}
        is_known = all(len(along.get(name, ())) > 1 for name in self._declared.example_sizes)
        if self._base is None or not is_known:
            return None
        rates = Rates(
            _PER_ELEMENT, _PER_EXCHANGED, _PER_OPERATOR, _PER_BYTE_OF_WEIGHTS, OPERATIONS_PER_SECOND, STEEPEST
        )
        return CostTable(self._base, along, self._weights, rates)

    def refuses_early(self, sizes: Sizes) -> bool:
        """Whether the module raises at these sizes within the first operations of a call; it is called no further."""
        return self._counter.refuses_early(sizes, _PROBED, _PER_ELEMENT)

    def refuses_inputs_early(self, inputs: Inputs) -> bool:
        """Whether a call with these inputs raises early; the module may write into the inputs."""
        return self._counter.refuses_inputs_early(inputs, _PROBED, _PER_ELEMENT)

    @property
    def unread_inputs(self) -> frozenset[int]:
        """The places of inputs that no operator takes at the example's sizes: only their sizes are read, or nothing."""
        return self._counter.unread_inputs

    @property
    def example_outputs(self) -> OutputSamples | None:
        """The outputs at the example's sizes; None unless the module really ran for the counts, drew and wrote nothing."""
        return self._counter.example_outputs

    @cached_property
    def table_rows(self) -> tuple[int, ...]:
        """Rows of the tables that the module holds."""
        return find_table_rows(self._module)

    def can_be_probed(self, sizes: Sizes) -> bool:
        """Whether the first operations of a call at these sizes need little memory, as far as that can be estimated."""
        return self.elements(sizes) <= _PROBED_ELEMENTS * self.most_elements

    @cached_property
    def is_dear(self) -> bool:
        """Whether a hundred calls at the example's sizes take more than two seconds or so."""
        return not self.is_thorough and _MANY_CALLS * self.operations(self._declared.example_sizes) > _LONG

    @cached_property
    def in_proportion(self) -> int:
        """The operations of all comparisons that are in proportion to the rest of the export, as that is estimated."""
        operators = 0 if self._base is None else self._base.operators
        seconds = EXPORT_S + EXPORT_S_PER_OPERATOR * operators + EXPORT_S_PER_BYTE * self._weights
        return int(COMPARING_SHARE * seconds * OPERATIONS_PER_SECOND)

    @cached_property
    def most_traces(self) -> int | None:
        """How many traces only to look for another way of the code are in proportion to the export; None: any number."""
        if self.is_thorough or self._base is None:
            return None
        return max(_FEW_TRACES, _TRACED_OPERATORS // max(1, self._base.operators))

    @cached_property
    def _weights(self) -> int:
        """The bytes of the module's parameters, which a call reads once."""
        return sum(each.numel() * each.element_size() for each in self._module.parameters())

    @property
    def _multiplies(self) -> bool:
        return self._base is not None and self._base.multiplied > 0

    @cached_property
    def cheap(self) -> int:
        """The most work of an ordinary comparison: more for a large model, but no multiple of an example that takes long."""
        example = self(self._declared.example_sizes)
        return max(CHEAP, min(8 * example, max(example, AFFORDABLE)))

    @cached_property
    def affordable(self) -> int:
        """The most work of one of a few comparisons. A larger budget allows more; `thorough` allows any."""
        example = self(self._declared.example_sizes)
        usual = max(AFFORDABLE, min(16 * example, 4 * max(example, AFFORDABLE)))
        return _NO_LIMIT if self.is_thorough else int(usual * max(1.0, self._budget_s / USUAL_BUDGET_S))

    @cached_property
    def all_work(self) -> int:
        """The most work of all comparisons together."""
        return _NO_LIMIT if self.is_thorough else int(self._budget_s * WORK_PER_SECOND)

    def excess(self, sizes: Sizes) -> str:
        """Which limits one comparison at these sizes exceeds, in words; "" if none."""
        elements, work = self.elements(sizes), self(sizes)
        found = []
        if elements > self.most_elements:
            most = _millions(self.most_elements)
            found.append(f"{MEMORY}: one call makes about {_millions(elements)} elements, {most} are allowed")
        if work > self.affordable:
            took, allowed = (round(each / WORK_PER_SECOND) for each in (work, self.affordable))
            found.append(f"{TIME}: one comparison is estimated at {took} s, {allowed} s are allowed")
        return "; ".join(found)

    @cached_property
    def most_elements(self) -> int:
        """The memory bound of a comparison, in elements."""
        return max(MOST_ELEMENTS, 4 * self.elements(self._declared.example_sizes))

    def _estimate(self, sizes: Sizes, count: Count) -> float:
        if self._base is None:
            return self._unmeasured(sizes, count)
        found = float(getattr(self._base, count))
        for name, size in sizes.items():
            found *= self._ratio(name, size, count)
        return found

    def _ratio(self, name: str, size: int, count: Count) -> float:
        """How many times the count at the example's sizes the count with this dim at this size is."""
        assert self._base is not None
        scaling = self._scaling(name, size)
        key = (name, size, count, len(scaling.counted))  # another count changes the estimates between its neighbours
        if key not in self._ratios:
            self._ratios[key] = scaling.ratio(size, self._base, count)
        return self._ratios[key]

    def _unmeasured(self, sizes: Sizes, count: Count) -> float:
        """Where nothing can be counted: every element of the inputs meets every position, in some hundred operators."""
        elements = self._declared.elements(sizes) * max((1, *sizes.values()))
        return getattr(Counted(200, elements, elements // 200), count)

    @property
    def _base(self) -> Counted | None:
        return self._counter.base

    def _scaling(self, name: str, size: int) -> Scaling:
        """The counts of this dim, as far as this size needs them."""
        assert self._base is not None
        example = self._declared.example_sizes[name]
        scaling = self._scalings.get(name)
        if scaling is None:
            scaling = self._scalings[name] = Scaling([(example, self._base)])
        if size < scaling.counted[0][0] or (self._counter.is_long and size > scaling.counted[0][0]):
            self._add(scaling, name, max(1, self._declared.domain.dim(name).smallest), first=True)
        while size > scaling.counted[-1][0] and name not in self._exhausted:
            last = scaling.counted[-1][0]
            is_long, farther = self._counter.is_long, next_counted_size(scaling.counted[-1:])
            if (predicted := predict_counts(scaling.counted, farther, is_long=is_long)) is not None:
                scaling.counted.append((farther, predicted))
            elif not self._add(scaling, name, next_counted_size(scaling.counted, is_long=is_long)):
                self._exhausted.add(name)
                self._ensure_two(scaling, name, last)
        return scaling

    def _ensure_two(self, scaling: Scaling, name: str, last: int) -> None:
        """A second count, to have a slope: at a smaller step, or the worst that is common."""
        if len(scaling.counted) > 1:
            return
        if self._add(scaling, name, 2 * last) or self._add(scaling, name, last + 1):
            return
        (size, base), example = scaling.counted[0], self._declared.example_sizes
        grown = self._declared.elements({**example, name: 2 * size}) / max(1, self._declared.elements(example))
        worst = Counted(
            base.operators,
            int(base.elements * grown * 2),
            int(base.answered * grown),
            int(base.multiplied * grown * 2),
            base.viewed,
        )
        scaling.counted.append((2 * size, worst))

    def _add(self, scaling: Scaling, name: str, size: int, first: bool = False) -> bool:
        multiple = self._declared.domain.dim(name).multiple
        size = -(-size // multiple) * multiple
        if any(size == known for known, _ in scaling.counted):
            return False
        counted = self._counter.count_along(name, size, scaling)
        if counted is None and not first:
            return False
        # No legal call with fewer operators or elements is assumed: sizes below the smallest count cost as much as it.
        scaling.counted.append((size, counted or scaling.counted[0][1]))
        scaling.counted.sort(key=lambda each: each[0])
        return True


def _millions(number: int) -> str:
    return f"{number / 1e6:,.0f} million"


def costing(
    module: torch.nn.Module, declared: Declared, budget_s: float = USUAL_BUDGET_S, *, thorough: bool = False
) -> Costing:
    """The estimator for this module and declaration; `budget_s` is the estimated time of all comparisons."""
    return Costing(module, declared, budget_s, thorough=thorough)
