"""The weights of a model in a file of their own: where each one lies, and its bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from anyshape.graphs.tensor_bytes import bytes_of

if TYPE_CHECKING:
    import onnx_ir as ir

# Below this a tensor stays in the model, where shape inference and optimizers can see it.
_SMALLEST = 1024

# So that a large tensor can be mapped into memory, on Windows too.
_ALIGNMENT, _ALIGNED_FROM = 2**16, 2**20


@dataclass(frozen=True)
class Layout:
    """Which weights go to the file `location`, and where; `weights` counts the bytes of all of them."""

    location: str
    replacements: Mapping[ir.Value, ir.ExternalTensor]
    tensors: tuple[tuple[int, ir.TensorProtocol], ...]
    weights: int

    def of_graph(self, graph: ir.Graph) -> dict[ir.Value, ir.ExternalTensor]:
        """Those of the replacements that are for initializers of this graph, not of one inside it."""
        return {value: tensor for value, tensor in self.replacements.items() if value.graph is graph}

    def write(self, stream: BinaryIO) -> None:
        """The content of the file."""
        for offset, tensor in self.tensors:
            stream.write(bytes(offset - stream.tell()))
            stream.write(bytes_of(tensor))


def lay_out(model: ir.Model, location: str) -> Layout:
    """A place in the file for every tensor that is not small, in the order of the graph."""
    import onnx_ir as ir

    replacements: dict[ir.Value, ir.ExternalTensor] = {}
    tensors: list[tuple[int, ir.TensorProtocol]] = []
    end = 0
    for value, tensor in _initializers(model):
        if tensor.nbytes < _SMALLEST or tensor.dtype == ir.DataType.STRING:
            continue
        offset = -(-end // _ALIGNMENT) * _ALIGNMENT if tensor.nbytes >= _ALIGNED_FROM else end
        end = offset + tensor.nbytes
        tensors.append((offset, tensor))
        replacements[value] = ir.ExternalTensor(
            location,
            offset,
            tensor.nbytes,
            tensor.dtype,
            shape=_shape(tensor),
            name=value.name or "",
            doc_string=tensor.doc_string,
            metadata_props=dict(tensor.metadata_props),
        )
    return Layout(location, replacements, tuple(tensors), end)


def inlined(model: ir.Model) -> dict[ir.Value, ir.TensorProtocol]:
    """Tensors in memory for the weights that lie in files, which may not be next to the file that is written."""
    import onnx_ir as ir

    return {
        value: ir.Tensor(tensor.numpy(), tensor.dtype, shape=_shape(tensor), name=tensor.name)
        for value, tensor in _initializers(model)
        if isinstance(tensor, ir.ExternalTensor)
    }


def _initializers(model: ir.Model) -> Iterator[tuple[ir.Value, ir.TensorProtocol]]:
    for graph in model.graphs():
        for value in graph.initializers.values():
            if value.const_value is not None:
                yield value, value.const_value


def _shape(tensor: ir.TensorProtocol) -> ir.Shape:
    import onnx_ir as ir

    return ir.Shape(tensor.shape.numpy())
