"""Steps that sizes alone decide, kept as they are while the module runs in another precision.

    k = torch.log(torch.tensor(float(n))).div(math.log(7)).ceil()      2 in float32 at n = 7, 1 in float64

A number that follows from no value of the inputs has one value at each size, so a file with another one is wrong there, and no
rounding excuses it. `steps_of_sizes` has what operators from floats to integers, booleans or rounded numbers gave in the
module's own run. `kept_steps` gives the same in a run in other precision: what is left to differ there is rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from anyshape.verify.choices import base_name
from anyshape.verify.reference import CallInputs, Reference

_TO_WHOLE_FLOATS = frozenset({"round", "floor", "ceil", "trunc", "sign", "fix", "floor_divide", "remainder", "fmod"})
_MOST_KEPT_BYTES = 64 * 2**20

Step = tuple[str, Any]
"""The operator, and what it gave."""


def steps_of_sizes(reference: Reference, inputs: CallInputs) -> list[Step]:
    """The steps of one run of the module, in the order of the calls, as far as they take up to 64 MiB."""
    watching = _Watching(inputs)
    with watching:
        reference.run(inputs, watched=True)
    return watching.steps


def kept_steps(steps: Sequence[Step], inputs: CallInputs) -> AbstractContextManager[object]:
    """While active, such operators give what they gave before, up to the first that is another operator or has another shape.

    `inputs` are those that the module is called with.
    """
    return _Keeping(steps, inputs) if steps else nullcontext()


class OfSizes(TorchDispatchMode):  # type: ignore[misc]
    """Follows by their memory which tensors depend on values of the inputs; once Python has read one, everything does.

    What depends on none follows from sizes and from what the module holds.
    """

    def __init__(self, inputs: CallInputs) -> None:
        super().__init__()
        self._of_values = set(places_of((inputs.args, dict(inputs.kwargs))))
        self._has_read = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        result = func(*args, **given)
        name = base_name(func)
        takes_shape_alone = name.startswith("new_") or name.endswith("_like")
        taken = set(places_of((args[1:] if takes_shape_alone else args, given)))
        if self._has_read or taken & self._of_values:
            self._of_values.update(places_of(result), taken if func._schema.is_mutable else ())
            self._has_read = self._has_read or is_number(result)
            return result
        self._of_values.difference_update(set(places_of(result)) - taken)  # memory that another tensor had before
        return self.of_sizes(func, (args, given), result)

    def of_sizes(self, func: Any, given: Any, result: Any) -> Any:
        """What the module gets in place of a result that follows from no value."""
        return self.at_step(base_name(func), result) if is_step(func, given, result) else result

    def at_step(self, name: str, result: Any) -> Any:
        """What the module gets in place of such a result of an operator that makes whole numbers or booleans of floats."""
        return result


class _Watching(OfSizes):
    def __init__(self, inputs: CallInputs) -> None:
        super().__init__(inputs)
        self.steps: list[Step] = []
        self._left = _MOST_KEPT_BYTES

    def at_step(self, name: str, result: Any) -> Any:
        self._left -= result.nbytes if isinstance(result, torch.Tensor) else 0
        if self._left >= 0:
            self.steps.append((name, result.clone() if isinstance(result, torch.Tensor) else result))
        return result


class _Keeping(OfSizes):
    def __init__(self, steps: Sequence[Step], inputs: CallInputs) -> None:
        super().__init__(inputs)
        self._steps = iter(steps)

    def at_step(self, name: str, result: Any) -> Any:
        known, kept = next(self._steps, ("", None))
        if known != name or type(kept) is not type(result):
            self._steps = iter(())
            return result
        if not isinstance(kept, torch.Tensor) or not isinstance(result, torch.Tensor):
            return kept
        if kept.shape != result.shape:
            self._steps = iter(())
            return result
        return kept.to(result.dtype, copy=True)


def places_of(value: Any) -> Iterator[int]:
    """Where the memory of each plain tensor begins; tensors without elements have none."""
    for leaf in tree_leaves(value):
        if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided and leaf.numel():
            yield leaf.untyped_storage().data_ptr()


def is_number(result: Any) -> bool:
    return isinstance(result, bool | int | float | complex)


def is_step(func: Any, given: Any, result: Any) -> bool:
    """Whether floats become whole numbers, booleans or a Python number."""
    if not any(isinstance(leaf, torch.Tensor) and leaf.is_floating_point() for leaf in tree_leaves(given)):
        return False
    if is_number(result):
        return True
    if type(result) is not torch.Tensor or func._schema.is_mutable:
        return False
    name = base_name(func)
    is_rounded = name in _TO_WHOLE_FLOATS or (name == "div" and given[1].get("rounding_mode") is not None)
    return is_rounded or not (result.is_floating_point() or result.is_complex())
