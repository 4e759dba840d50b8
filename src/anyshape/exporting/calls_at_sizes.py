"""Call the module at given sizes: the record Refusal where it raises or returns other outputs, None where it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from anyshape.diagnose.consent import diagnose_lack_of_memory
from anyshape.diagnose.value_findings import describe_outputs
from anyshape.domain import Sizes
from anyshape.explore import Costing
from anyshape.findings import PromiseBroken
from anyshape.inputs import Declared, Inputs
from anyshape.records.verdict import Refusal
from anyshape.verify import Reference, Refused
from anyshape.verify.patterns import is_number
from anyshape.verify.tensors import map_tensors

if TYPE_CHECKING:
    import torch

Outcomes = dict[tuple[int | None, tuple[tuple[str, int], ...]], Refusal | None]
"""The module's refusals, None where it answered, by the number of draws of values and the sizes."""


def make_trial(
    declared: Declared,
    reference: Reference,
    *,
    draws: int | None = None,
    known: Outcomes | None = None,
    cost: Costing | None = None,
) -> Callable[[Sizes], Refusal | None]:
    """A function that calls the module at given sizes, and gives its refusal. It raises PromiseBroken for want of memory.

    Other outputs than at the example's sizes count as a refusal: a file always has the same ones. With `draws` the
    module has to answer for so many draws of values, and for each of them with all integers of a tensor equal; for one draw at
    sizes at which a call is dear by `cost`, since that has as many values as many draws at usual sizes. At sizes that `known`
    has, the module is not called again; what is found is added to it.
    """
    outcomes: Outcomes = {} if known is None else known

    def try_sizes(sizes: Sizes) -> Refusal | None:
        key = (draws, tuple(sorted(sizes.items())))
        if key not in outcomes:
            outcomes[key] = try_once(sizes)
        return outcomes[key]

    def try_once(sizes: Sizes) -> Refusal | None:
        if draws is None:
            return try_inputs(sizes, declared.make(sizes, 0))
        is_dear = cost is not None and not cost.is_thorough and cost(sizes) > cost.cheap
        drawn = drawn_inputs(declared, sizes, 1 if is_dear else draws)
        if (single := (None, tuple(sorted(sizes.items())))) in outcomes:  # that of the first draw
            if outcomes[single] is not None:
                return outcomes[single]
            next(drawn)
        tried = (try_inputs(sizes, inputs) for inputs in drawn)
        return next((refusal for refusal in tried if refusal is not None), None)

    def try_inputs(sizes: Sizes, inputs: Inputs) -> Refusal | None:
        answer = reference.recall(inputs)
        if isinstance(answer, Refused):
            if answer.memory and dict(sizes) == dict(declared.example_sizes):
                raise PromiseBroken(diagnose_lack_of_memory(sizes, answer.source, declared.example_sizes))
            return Refusal(
                dict(sizes), answer.message, answer.source, has_ended=answer.ended, lacks_memory=answer.memory
            )
        expected = reference.outputs_at_example(lambda: declared.make(declared.example_sizes, 0))
        if expected is None or answer.outputs == expected:
            return None
        is_dtype = answer.paths == tuple(path for path, _ in expected)
        message = describe_outputs(answer.outputs, expected)
        return Refusal(dict(sizes), message, outputs=answer.paths, has_other_dtypes=is_dtype)

    return try_sizes


def drawn_inputs(declared: Declared, sizes: Sizes, draws: int) -> Iterator[Inputs]:
    """A few draws of values, and the same with all integers of a tensor equal: no padding, or nothing else."""
    for seed in range(draws):
        inputs = declared.make(sizes, seed)
        yield inputs
        yield map_tensors(inputs, _with_equal_integers)


def _with_equal_integers(tensor: torch.Tensor) -> torch.Tensor:
    import torch

    return torch.full_like(tensor, int(tensor.reshape(-1)[0])) if is_number(tensor) else tensor
