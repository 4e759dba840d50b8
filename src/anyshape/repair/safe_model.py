"""A model of unknown origin, looked over before anything is done with it: nothing outside its folder is read, nothing that it
only claims to have is allocated."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from anyshape.findings import Finding, UsageError

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

_DEEPEST = 64
_MOST_ELEMENTS = 2**31


def check_proto(model: onnx.ModelProto, path: Path) -> None:
    """Raise UsageError for graphs nested too deep, tensors without their data, and data outside the model's folder."""
    for graph in _graphs(model, path):
        for tensor in graph.initializer:
            _check_tensor(tensor, path)
        for node in graph.node:
            for attribute in node.attribute:
                for tensor in (*([attribute.t] if attribute.HasField("t") else []), *attribute.tensors):
                    _check_tensor(tensor, path)
        if graph.sparse_initializer:
            raise UsageError(_unsafe(path, "it has sparse weights.", "these are not read."))
        for value in (*graph.input, *graph.output):
            sizes = [dim.dim_value for dim in value.type.tensor_type.shape.dim if dim.HasField("dim_value")]
            if prod(max(size, 1) for size in sizes) > _MOST_ELEMENTS:
                raise UsageError(
                    _unsafe(path, f"{value.name!r} is declared with {_many(sizes)} elements.", "no machine holds it.")
                )


def _graphs(model: onnx.ModelProto, path: Path) -> Iterator[onnx.GraphProto]:
    left = [(model.graph, 0)]
    while left:
        graph, depth = left.pop()
        if depth > _DEEPEST:
            raise UsageError(
                _unsafe(path, f"its graphs are nested more than {_DEEPEST} deep.", "no exporter writes that.")
            )
        yield graph
        for node in graph.node:
            for attribute in node.attribute:
                inner = [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]
                left += [(each, depth + 1) for each in inner]


def _check_tensor(tensor: onnx.TensorProto, path: Path) -> None:
    import onnx

    count = prod(tensor.dims)
    if count < 0 or any(size < 0 for size in tensor.dims):
        raise UsageError(_unsafe(path, f"the tensor {tensor.name!r} has a negative size.", "no tensor has."))
    if tensor.data_type == onnx.TensorProto.STRING:
        return
    bits = _bits(tensor.data_type)
    needed = -(-count * bits // 8)
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        _check_external(tensor, path, needed)
    elif tensor.raw_data:
        if len(tensor.raw_data) != needed:
            raise UsageError(
                _unsafe(
                    path,
                    f"the tensor {tensor.name!r} is declared with {_many(tensor.dims)} elements.",
                    f"the file holds {len(tensor.raw_data)} bytes of {needed}.",
                )
            )
    else:
        held = max(
            len(each)
            for each in (
                tensor.float_data,
                tensor.int32_data,
                tensor.int64_data,
                tensor.double_data,
                tensor.uint64_data,
            )
        )
        if count > 2 * held + 1 and count:
            raise UsageError(
                _unsafe(
                    path,
                    f"the tensor {tensor.name!r} is declared with {_many(tensor.dims)} elements.",
                    f"the file holds {held} of them.",
                )
            )


def _bits(data_type: int) -> int:
    import onnx_ir as ir

    try:
        return int(ir.DataType(data_type).bitwidth)
    except (TypeError, ValueError):
        return 8


def _check_external(tensor: onnx.TensorProto, path: Path, needed: int) -> None:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    folder = path.resolve().parent
    target = (folder / location).resolve()
    if not location or Path(location).is_absolute() or folder not in target.parents:
        raise UsageError(
            _unsafe(
                path,
                f"the weights {tensor.name!r} lie at {location!r}, outside the model's folder.",
                "a model reads nothing but what lies beside it.",
            )
        )
    if not target.is_file():
        return  # a finding of its own
    offset = int(entries.get("offset") or 0)
    if offset < 0 or offset + needed > target.stat().st_size:
        raise UsageError(
            _unsafe(
                path,
                f"the weights {tensor.name!r} reach beyond the end of {location!r}.",
                "that file was cut short, or belongs to another model.",
            )
        )


def sort_graphs(model: ir.Model, path: Path) -> None:
    """Bring nodes into an order in which they can run. Raises UsageError for a cycle."""
    try:
        model.graph.sort()
    except ValueError as error:
        raise UsageError(
            _unsafe(path, "its nodes form a cycle.", "each of them needs the result of another one first.")
        ) from error


def _many(sizes: object) -> str:
    return " x ".join(map(str, sizes))  # type: ignore[call-overload]


def _unsafe(path: Path, what: str, why: str) -> Finding:
    return Finding(
        code="AS505",
        name="unsafe-file",
        what=f"{str(path)!r} is not opened: {what}",
        why=why,
        fix="nothing was read beyond the file itself, and nothing was written. Use a file that an exporter wrote.",
    )
