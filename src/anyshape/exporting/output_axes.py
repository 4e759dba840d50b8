"""Output axes of captures that are not proved: expressions that the module's own outputs contradict are left open.

    a capture that holds `n == 11` inside, output 4 long    ->    the axis has no expression, since at n=100 it is 34 long

The file computes each size itself. An untrue expression would be a false promise of the contract, and of the file's output.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from anyshape.domain import Expr, Sizes, Undefined, evaluate, holds
from anyshape.exporting.context import ExportContext
from anyshape.records.captured import Captured, OutputTensor, Region
from anyshape.verify.reference import Answer

_POINTS = 6
Seen = list[tuple[Sizes, Answer]]


def leave_false_axes_open(captured: Captured, context: ExportContext) -> Captured:
    """The capture with None for each output axis that has another size in the module's outputs."""
    if captured.is_proved or not captured.outputs:
        return captured
    seen = list(_outputs_at(_telling_points(captured, context), context))
    regions = tuple(_checked_region(region, seen) for region in captured.regions)
    return replace(captured, outputs=_checked(captured.outputs, seen), regions=regions)


def _telling_points(captured: Captured, context: ExportContext) -> list[Sizes]:
    """Affordable sizes at which the module answered, those first that differ from the traced sizes in most dims."""
    traced = [region.traced_at for region in captured.regions]
    domain = context.declared.domain
    inside = [sizes for sizes in context.explored.answered if domain.contains(sizes) and not context.cost.excess(sizes)]

    def count_alike(sizes: Sizes) -> int:
        return sum(sizes[name] == at.get(name) for at in traced for name in sizes)

    return sorted(inside, key=count_alike)[:_POINTS]


def _outputs_at(points: Iterable[Sizes], context: ExportContext) -> Iterable[tuple[Sizes, Answer]]:
    for sizes in points:
        answer = context.reference.recall(context.declared.make(sizes, context.options.verify.seed))
        if isinstance(answer, Answer):
            yield sizes, answer


def _checked_region(region: Region, seen: Seen) -> Region:
    inside = [(sizes, answer) for sizes, answer in seen if holds(region.condition, sizes)]
    return replace(region, outputs=_checked(region.outputs, inside))


def _checked(outputs: Sequence[OutputTensor], seen: Seen) -> tuple[OutputTensor, ...]:
    shapes = [(sizes, dict(zip(answer.paths, (a.shape for a in answer.arrays), strict=True))) for sizes, answer in seen]

    def is_true(path: str, place: int, axis: Expr) -> bool:
        known = [(sizes, at[path]) for sizes, at in shapes if path in at and place < len(at[path])]
        try:
            return all(evaluate(axis, sizes) == shape[place] for sizes, shape in known)
        except Undefined:  # a division by 0 at these sizes
            return False

    return tuple(
        replace(
            output,
            axes=tuple(
                axis if axis is None or is_true(output.path, place, axis) else None
                for place, axis in enumerate(output.axes)
            ),
        )
        for output in outputs
    )
