"""Evidence that a repaired file is right, where no model is at hand: the original at its own sizes, and run in pieces.

Along a dim on which a model acts independently (a batch), the repaired file at n rows has to give what the original gives for
these rows in groups of its own size. Rows that are missing in the last group are filled with copies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.contract.safe_tensors import unsafe
from anyshape.domain import Ref, Sizes, dims_of, evaluate, format_sizes
from anyshape.findings import UsageError
from anyshape.repair.known_shapes import Axes, multiple_of, places_of_group
from anyshape.runtime import ChildRunner, RunError, RuntimeFailed
from anyshape.runtime.process import physical_memory
from anyshape.saving import save_to_run
from anyshape.verify.compare import OutputTolerance, compare_outputs

Array = np.ndarray[Any, Any]
_THROUGH = ("Cast", "Identity", "Unsqueeze", "Squeeze", "Reshape", "Flatten", "Transpose", "Slice")
_FEW = 2
_DRAWN = 8  # bytes of an element that is drawn, before it gets its type
_SHARE = 4  # of the memory: inputs and outputs are held by two processes


@dataclass(frozen=True)
class TensorKind:
    """How values of an input are drawn."""

    dtype: np.dtype[Any]
    below: int = _FEW

    def draw(self, shape: Sequence[int], random: np.random.Generator) -> Array:
        if self.dtype.kind == "b":
            return random.random(shape) < 0.5
        if self.dtype.kind in "iu":
            return random.integers(0, self.below, shape).astype(self.dtype)
        return random.standard_normal(shape).astype(self.dtype)


def kinds_of(graph: ir.Graph) -> dict[str, TensorKind]:
    """Each input's dtype; integers that pick rows of a table are below its number of rows."""
    return {
        str(value.name): TensorKind(value.dtype.numpy(), _rows(value))
        for value in graph.inputs
        if value.name not in graph.initializers and value.dtype is not None
    }


def _rows(value: ir.Value) -> int:
    left, seen, fewest = [value], {value}, 0
    while left:
        for node, index in left.pop().uses():
            if node.op_type == "Gather" and index == 1:
                table = node.inputs[0]
                axis = node.attributes.get("axis")
                shape = None if table is None else table.shape
                size = shape[axis.as_int() if axis else 0] if shape is not None else None
                if isinstance(size, int):
                    fewest = min(fewest or size, size)
            elif node.op_type in _THROUGH and index == 0 and node.outputs[0] not in seen:
                seen.add(node.outputs[0])
                left.append(node.outputs[0])
    return max(fewest, 1) if fewest else _FEW


@dataclass
class FilePair:
    """The original and the repaired file, with the axes of the latter. Both are run in processes of their own."""

    original: ChildRunner
    repaired: ChildRunner
    kinds: Mapping[str, TensorKind]
    inputs: Mapping[str, Axes]
    outputs: Mapping[str, Axes]
    sizes: Sizes
    seed: int = 0

    def feeds(self, sizes: Sizes, seed: int = 0) -> dict[str, Array]:
        """Random inputs. Raises RuntimeFailed where they are too large to be made."""
        random = np.random.default_rng((self.seed, seed))
        shapes = {name: [evaluate(axis, sizes) for axis in axes] for name, axes in self.inputs.items()}
        size = sum(math.prod(shape) * max(self.kinds[name].dtype.itemsize, _DRAWN) for name, shape in shapes.items())
        if size > (physical_memory()) // _SHARE:
            raise RuntimeFailed(f"its inputs need {size / 2**30:.0f} GiB at {format_sizes(sizes)}", memory=True)
        return {name: self.kinds[name].draw(shape, random) for name, shape in shapes.items()}

    def difference_at_own_sizes(self) -> str | None:
        """Why the two differ at the original's own sizes; None if they do not. Raises RunError of the original."""
        feeds = self.feeds(self.sizes)
        expected = self.original.run(feeds)
        try:
            return self._difference(expected, self.repaired.run(feeds))
        except RunError as error:
            return str(error)

    def difference_in_pieces(self, dim: str, count: int, others: Sizes) -> str | None:
        """Why the repaired file at `count` differs from pieces; None if it does not.

        The pieces are run by the original at its own sizes of the other dims, by the repaired file elsewhere.
        """
        sizes = {**self.sizes, **others, dim: count}
        own = self.sizes[dim]
        groups = -(-count // own)
        if not self._is_cut(dim):
            return f"an axis is no multiple of {dim}."
        reference = (
            self.original
            if all(sizes[name] == size for name, size in self.sizes.items() if name != dim)
            else self.repaired
        )
        try:
            feeds = self.feeds(sizes, seed=count)
            pieces = [reference.run(self._piece(feeds, dim, index, sizes)) for index in range(groups)]
            actual = self.repaired.run(feeds)
        except RunError as error:
            return str(error)
        expected = []
        for place, axes in enumerate(self.outputs.values()):
            axis = next((index for index, each in enumerate(axes) if dim in dims_of(each)), None)
            parts = [piece[place] for piece in pieces]
            if axis is None:
                expected.append(parts[0])
                continue
            expected.append(np.concatenate(parts, axis).take(range(evaluate(axes[axis], sizes)), axis))
        return self._difference(expected, actual)

    def _is_cut(self, dim: str) -> bool:
        if self.sizes[dim] == 1 and any(map(partial(_is_elsewhere, dim=dim, sizes=self.sizes), self.outputs.values())):
            return False
        every = [
            axis for axes in (*self.inputs.values(), *self.outputs.values()) for axis in axes if dim in dims_of(axis)
        ]
        return all(multiple_of(axis, dim, self.sizes) is not None for axis in every)

    def _piece(self, feeds: Mapping[str, Array], dim: str, index: int, sizes: Sizes) -> dict[str, Array]:
        """Rows of one group; the last one is filled with its first row."""
        piece = dict(feeds)
        for name, axes in self.inputs.items():
            for axis, expr in enumerate(axes):
                width = multiple_of(expr, dim, sizes)
                if dim in dims_of(expr) and width is not None:
                    places = places_of_group(index, self.sizes[dim], sizes[dim], width)
                    piece[name] = piece[name].take(places, axis)
        return piece

    def difference_of_shapes(self, sizes: Sizes) -> str | None:
        """Why the repaired file does not give the shapes that its outputs declare; None if it does."""
        try:
            arrays = self.repaired.run(self.feeds(sizes, seed=1))
        except RunError as error:
            return str(error)
        for (name, axes), array in zip(self.outputs.items(), arrays, strict=True):
            expected = tuple(evaluate(axis, sizes) for axis in axes)
            if array.shape != expected:
                return f"shape of {name!r}: {list(array.shape)}, not {list(expected)}."
        return None

    def _difference(self, expected: Sequence[Array], actual: Sequence[Array]) -> str | None:
        found = compare_outputs(expected, actual, [OutputTolerance(name) for name in self.outputs])
        if found is None:
            return None
        values = [f"{each:.4g}" if isinstance(each, float) else str(each) for each in (found.expected, found.actual)]
        return f"output {found.output!r} is {values[1]}, not {values[0]}."


def _is_elsewhere(axes: Axes, dim: str, sizes: Sizes) -> bool:
    """Whether a dim of size 1 went into another axis of an output, which has an axis of size 1."""
    sizes_in_file = [evaluate(axis, sizes) for axis in axes]
    return any(dim in dims_of(axis) for axis in axes) and Ref(dim) not in axes and 1 in sizes_in_file


def write_to_run(model: ir.Model, target: Path, name: str) -> None:
    """Write a temporary file that is only run. Raises UsageError where the graph of the file `name` cannot be written again."""
    try:
        save_to_run(model, target)
    except ir.serde.SerdeError as error:
        why = str(error.__cause__ or error).partition("\n")[0]
        raise UsageError(unsafe(name, "its graph cannot be written again.", why)) from error


def broken_form(path: Path) -> str:
    """What ONNX's own checker has against a file."""
    import onnx

    try:
        onnx.checker.check_model(str(path))
    except Exception as error:  # several types, some of which come from C++
        return str(error)
    return ""
