"""The noise floor: how far the module's own precision moves its outputs, measured on the module itself.

The module's outputs are compared with its outputs in double precision; where it cannot run in that, or its weights take more
than 1 GiB, with its outputs in the same precision and another order of summation. At most two sizes are measured, and the
larger relative noise is kept; towards more elements than were measured it grows with the square root, as the error of a sum of
rounded terms does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from anyshape.processes import is_own_process
from anyshape.runtime.child_messages import Array
from anyshape.verify.compare import OutputTolerance, epsilon, is_float, widen
from anyshape.verify.float64_copy import double_by_default
from anyshape.verify.reference import Answer, CallInputs, Reference, Refused
from anyshape.verify.rounding_steps import answers_beside_steps
from anyshape.verify.steps_of_sizes import Step, kept_steps, steps_of_sizes
from anyshape.verify.tensors import as_float64, map_tensors, module_in_float64, total_elements
from anyshape.verify.tolerance import Tolerance, default_noise, least_noise, magnitudes

MEASURED_SIZES = 2
_DOUBLE_BYTES = 2**30
_PERTURBATIONS = 3
_SLIGHT = 1e-3


@dataclass(frozen=True)
class NoiseFloor:
    """Per output the noise relative to its magnitude (None: not a float, or not measured) at up to `elements`.

    `roundings` are the epsilons of the narrowest precision on the way to each output, as far as they are known.
    """

    noise: tuple[float | None, ...] = ()
    elements: int = 0
    how: str = "assumed from the dtype"
    roundings: tuple[float, ...] = ()

    def tolerances(self, names: Sequence[str], answer: Answer, elements: int) -> tuple[OutputTolerance, ...]:
        """The tolerance of each output, for inputs of that many elements; `Tolerance.limit` computes the number."""
        growth = math.sqrt(max(1.0, elements / self.elements)) if self.elements else 1.0
        measured = self.noise if len(self.noise) == len(answer.arrays) else (None,) * len(answer.arrays)
        roundings = self.roundings if len(self.roundings) == len(answer.arrays) else (0.0,) * len(answer.arrays)
        return tuple(
            OutputTolerance(name, Tolerance(None if noise is None else noise * growth), any_float, rounding)
            for name, noise, any_float, rounding in zip(names, measured, answer.python_floats, roundings, strict=True)
        )


class Yardstick:
    """More precise answers than the module's own, for judging how much of a difference is noise."""

    def __init__(self, reference: Reference, *, in_doubles: bool = True) -> None:
        self._reference = reference
        self._double = _double_of(reference) if in_doubles else None
        self._last: tuple[CallInputs, Answer] | None = None

    @property
    def how(self) -> str:
        """In words, for the report."""
        return "float64 eager" if self._double is not None else "another order of summation"

    def double_answer(self, inputs: CallInputs, steps: Sequence[Step] = ()) -> Answer | None:
        """The answer in double precision, with these steps of sizes (`steps_of_sizes`); None when it cannot be had."""
        if self._double is None:
            return None
        wide = map_tensors(inputs, as_float64)
        with double_by_default(), kept_steps(steps, wide):
            answer = self._double.run(wide)
        if isinstance(answer, Refused):
            self._double = None
            return None
        if not steps:
            self._last = (inputs, answer)
        return answer

    def recall_double(self, inputs: CallInputs) -> Answer | None:
        """`double_answer`, but the module runs only if its last call had other inputs."""
        return self._last[1] if self._last is not None and self._last[0] is inputs else self.double_answer(inputs)

    def other_answer(self, inputs: CallInputs, steps: Sequence[Step] = ()) -> Answer | None:
        """The answer in double precision, or else in another order of summation; None when neither can be had."""
        exact = self.double_answer(inputs, steps) if steps else self.recall_double(inputs)
        if exact is not None:
            return exact
        with other_order(), kept_steps(steps, inputs):
            answer = self._reference.run(inputs, watched=True)
        return answer if isinstance(answer, Answer) else None

    def sensitivities(
        self,
        inputs: CallInputs,
        answer: Answer,
        seed: int,
        ordinary: CallInputs | None = None,
        roundings: Sequence[float] = (),
        keeps_ties: bool = False,
    ) -> Iterator[tuple[Array, ...]]:
        """Per-element sensitivity: how far the answer moves in another precision, or when inputs change by a rounding error.

        First zeros, then after each further answer the largest distances so far: a caller stops when it has seen enough. The
        last ones are those of numbers that are rounded to the other side (`rounding_steps`).
        Infinite where even the shape does. Integers change too: an argmax that flips between two equal values does. With
        `ordinary` inputs, zeros change too, by a rounding error of those: a norm of equal numbers is all rounding. Outputs
        that `roundings` names are looked at when inputs change by a rounding error of that precision, too. With `keeps_ties`
        equal inputs stay equal.
        """
        sensitivities = [np.zeros(array.shape) for array in answer.arrays]
        narrow = max(roundings, default=0.0) if len(roundings) == len(sensitivities) else 0.0
        scale = _largest_input(ordinary) if ordinary is not None else 0.0
        yield tuple(sensitivities)
        for zeros, rounding, other in self._others(inputs, seed, (scale, narrow), keeps_ties):
            for position, (one, two) in enumerate(zip(answer.arrays, other.arrays, strict=False)):
                if rounding and roundings[position] < rounding:
                    continue
                distance = distance_between(one, two)
                if zeros:  # rounding falls anywhere; a branch that asks for zeros goes another way, which is no noise
                    distance = np.where(distance <= _SLIGHT, distance, 0.0)
                    distance = np.full(distance.shape, distance.max(initial=0.0))
                sensitivities[position] = np.maximum(sensitivities[position], distance)
            yield tuple(sensitivities)

    def loses_numbers(self, inputs: CallInputs, answer: Answer, seed: int) -> bool:
        """Whether NaN or infinity come and go in the answer when it is computed in other precision, or inputs change by a
        rounding error: where they do, a file may have numbers there as well."""
        others = (other for _, _, other in self._others(inputs, seed, (0.0, 0.0)))
        return any(
            len(other.arrays) != len(answer.arrays) or any(map(_has_other_numbers, answer.arrays, other.arrays))
            for other in others
        )

    def _others(
        self, inputs: CallInputs, seed: int, sizes: tuple[float, float], keeps_ties: bool = False
    ) -> Iterator[tuple[float, float, Answer]]:
        """Answers in other precision to these inputs and to slightly other ones, with how those were changed."""
        scale, narrow = sizes
        steps = steps_of_sizes(self._reference, inputs)
        shifts = [(0.0, 0.0, shift) for shift in range(_PERTURBATIONS + 1)]
        shifts += [(scale, 0.0, shift) for shift in range(1, _PERTURBATIONS + 1) if scale]
        shifts += [(0.0, narrow, shift) for shift in range(1, _PERTURBATIONS + 1) if narrow]
        for zeros, rounding, shift in shifts:
            generator = torch.Generator().manual_seed(seed + shift)
            nudge = partial(nudged, generator=generator, scale=zeros, rounding=rounding, keeps_ties=keeps_ties)
            moved = map_tensors(inputs, nudge) if shift else inputs
            other = self.other_answer(moved, steps)
            if other is not None:
                yield zeros, rounding, other
        for other in answers_beside_steps(self._reference, inputs, partial(self.other_answer, steps=steps), steps):
            yield 0.0, 0.0, other

    def measure(self, samples: Sequence[CallInputs]) -> NoiseFloor:
        """The floor from at most two samples."""
        worst: list[float | None] = []
        elements = 0
        for inputs in samples[:MEASURED_SIZES]:
            answer = self._reference.recall(inputs)
            other = None if isinstance(answer, Refused) else self.other_answer(inputs)
            if isinstance(answer, Refused) or other is None or len(other.arrays) != len(answer.arrays):
                continue
            found = self._noise_between(answer, other)
            if any(noise is not None and noise > _SLIGHT for noise in found):  # a step may be what differs
                steps = steps_of_sizes(self._reference, inputs)
                kept = self.other_answer(inputs, steps) if steps else None
                if kept is not None and len(kept.arrays) == len(answer.arrays):
                    found = self._noise_between(answer, kept)
            if worst and len(worst) != len(found):
                continue
            worst = [_larger(one, two) for one, two in zip(worst or [None] * len(found), found, strict=True)]
            elements = max(elements, total_elements(inputs))
        return NoiseFloor(tuple(worst), elements, self.how if worst else NoiseFloor.how)

    def _noise_between(self, answer: Answer, other: Answer) -> list[float | None]:
        return [_noise(one, two, self._double is None) for one, two in zip(answer.arrays, other.arrays, strict=True)]


def relative_noise(answer: Array, other: Array) -> float | None:
    """The largest distance of two answers, relative to the magnitude; None when there is nothing to measure."""
    if not is_float(answer) or not is_float(other) or answer.shape != other.shape or answer.size == 0:
        return None
    one, two = widen(answer), widen(other)
    usable = np.isfinite(one) & np.isfinite(two)
    if not usable.any():
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.abs(one - two) / magnitudes(np.where(usable, one, np.nan))
    ratio = ratio[usable & np.isfinite(ratio)]
    return float(ratio.max()) if ratio.size else 0.0


def noise_of_ordinary(usual: Answer, sensitivities: Sequence[Array]) -> tuple[Array, ...]:
    """Per-element sensitivity, at least the noise of one rounding of an ordinary answer (magnitudes above 1 count as 1)."""
    if len(usual.arrays) != len(sensitivities):
        return tuple(sensitivities)
    return tuple(
        np.maximum(sensitivity, least_noise(epsilon(array)) * min(1.0, _largest(array)))
        if is_float(array)
        else sensitivity
        for sensitivity, array in zip(sensitivities, usual.arrays, strict=True)
    )


def _largest(array: Array) -> float:
    return float(np.max(np.abs(widen(array)), initial=0.0, where=np.isfinite(widen(array))))


def _largest_input(inputs: CallInputs) -> float:
    """The largest magnitude among the floating-point inputs, 1 at most."""
    largest = [0.0]

    def look(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_floating_point() and tensor.numel():
            largest.append(float(tensor.detach().abs().double().nan_to_num(0.0, 0.0, 0.0).max()))
        return tensor

    map_tensors(inputs, look)
    return min(1.0, max(largest))


def nudged(
    tensor: torch.Tensor,
    generator: torch.Generator,
    scale: float = 0.0,
    rounding: float = 0.0,
    keeps_ties: bool = False,
) -> torch.Tensor:
    """Each floating-point element times one plus or minus a rounding error; zeros stay zeros unless there is a scale.

    With a `rounding` the error is half of that, which is what rounding to a precision of that epsilon makes.
    """
    if not tensor.is_floating_point() or torch.finfo(tensor.dtype).bits < 16:
        return tensor
    signs = torch.randint(-1, 2, tensor.shape, generator=generator).to(tensor.device)
    if keeps_ties and tensor.numel():
        signs = signs.reshape(-1)[tensor.unique(return_inverse=True)[1]]
    error = max(2 * torch.finfo(tensor.dtype).eps, rounding / 2) * signs
    zeros = error * scale if scale else tensor.double()  # which keep their sign
    wide = torch.where(tensor == 0, zeros, tensor.double() * (1 + error))
    return wide.to(tensor.dtype)


def distance_between(one: Array, other: Array) -> Array:
    """Element by element; infinity where the shapes, or two integers, differ."""
    if one.shape != other.shape:
        return np.full(one.shape, np.inf)
    if not is_float(one):
        return np.where(one != other, np.inf, 0.0)
    with np.errstate(invalid="ignore"):
        distance = np.abs(widen(one) - widen(other))
    return np.where(np.isnan(distance), 0.0, distance)


def _has_other_numbers(one: Array, other: Array) -> bool:
    if not is_float(one) or not is_float(other) or one.shape != other.shape:
        return False
    return bool((np.isfinite(widen(one)) != np.isfinite(widen(other))).any())


def _noise(answer: Array, other: Array, is_same_precision: bool) -> float | None:
    noise = relative_noise(answer, other)
    if noise is None or not is_same_precision:
        return noise
    # Two orders of summation can agree by chance; never trust them below what the dtype suggests.
    return max(noise, default_noise(epsilon(answer)))


def _larger(one: float | None, other: float | None) -> float | None:
    return max((value for value in (one, other) if value is not None), default=None)


def _double_of(reference: Reference) -> Reference | None:
    """A copy of the module in double precision; None when it is too large or cannot be copied."""
    size = sum(parameter.numel() * parameter.element_size() for parameter in reference.module.parameters())
    if size > _DOUBLE_BYTES:
        return None
    try:
        module = module_in_float64(reference.module)
    except Exception:  # a module may hold anything, and anything may refuse to be copied
        return None
    return Reference(module, reference.flatten)


@contextmanager
def other_order() -> Iterator[None]:
    """Sums are taken in another order: other kernels, and another number of threads where there may be several.

    A forked process has one: with two it would wait for a thread of OpenMP that the fork has not taken along.
    """
    threads = torch.get_num_threads()
    if not is_own_process():
        torch.set_num_threads(1 if threads > 1 else 2)
    onednn, *_ = torch.backends.mkldnn.set_flags(_enabled=False)  # type: ignore[no-untyped-call]  # `flags` would also set, and warn about, TF32
    try:
        yield
    finally:
        torch.backends.mkldnn.set_flags(_enabled=onednn)  # type: ignore[no-untyped-call]
        if not is_own_process():
            torch.set_num_threads(threads)
