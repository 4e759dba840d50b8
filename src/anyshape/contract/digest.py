"""A digest of what an ONNX model computes, and whether a file is still the one that was verified.

The digest is the same for every way to store the model, and another one after any change to it.

Covered: inputs, outputs, nodes with their names and attributes, functions, opsets, and every tensor. Not covered: what
changes no output (metadata, doc strings, shapes of inner values, the order of initializers), and how a tensor is stored
(inline or in a second file, as bytes or as numbers). Tensors of 1 KiB and more count as weights, which have a digest of
their own: the digest of the graph needs no second file.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from anyshape.contract.read_file import name_of, open_model, read_metadata_of
from anyshape.findings import Finding, Severity
from anyshape.findings.finding import quoted
from anyshape.graphs import bytes_of
from anyshape.records.contract import KEY, OWN_DIGEST, Contract, Digest, digest_contract

if TYPE_CHECKING:
    Source = str | PathLike[str] | bytes

_WEIGHT_BYTES = 1024


def digest_model(model: ir.Model) -> Digest:
    """Both digests. Raises OSError where weights lie in a file that is not there."""
    return Digest(digest_graph(model), digest_weights(model))


def digest_graph(model: ir.Model) -> str:
    """The digest of everything but the values of weights."""
    functions = [_function(each) for each in model.functions.values()]
    plain = [_opsets(model.opset_imports), _graph(model.graph), sorted(functions, key=json.dumps)]
    return _hex(hashlib.sha256(json.dumps(plain).encode()))


def digest_weights(model: ir.Model) -> str:
    """The digest of the values of weights, by name."""
    found = hashlib.sha256()
    for graph in model.graphs():
        for name, value in sorted(graph.initializers.items()):
            tensor = value.const_value
            if tensor is not None and _is_weight(tensor):
                found.update(f"{name}\0{tensor.nbytes}\0".encode())
                found.update(bytes_of(tensor))
    return _hex(found)


def _hex(found: Any) -> str:
    return f"sha256:{found.hexdigest()}"


def _is_weight(tensor: ir.TensorProtocol) -> bool:
    return tensor.dtype != ir.DataType.STRING and tensor.nbytes >= _WEIGHT_BYTES


def _graph(graph: ir.Graph) -> list[Any]:
    initializers = [[name, _initializer(value.const_value)] for name, value in sorted(graph.initializers.items())]
    return [_typed(graph.inputs), _typed(graph.outputs), initializers, list(_nodes(graph))]


def _function(function: ir.Function) -> list[Any]:
    names = [[value.name for value in side] for side in (function.inputs, function.outputs)]
    identity = [function.domain, function.name, function.overload]
    attributes = sorted(([name, _attribute(each)] for name, each in function.attributes.items()), key=json.dumps)
    return [identity, *names, attributes, _opsets(function.opset_imports), list(_nodes(function))]


def _opsets(imports: Any) -> list[Any]:
    return sorted([_domain(domain), version] for domain, version in imports.items())


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _typed(values: Iterable[ir.Value]) -> list[Any]:
    """Name, type and shape of inputs or outputs."""
    return [[value.name, str(value.type), _shape(value.shape)] for value in values]


def _shape(shape: ir.Shape | None) -> list[int | str | None] | None:
    return None if shape is None else [size if isinstance(size, int) else size.value for size in shape]


def _nodes(nodes: Iterable[ir.Node]) -> Iterator[list[Any]]:
    for node in nodes:
        yield [
            _domain(node.domain),
            node.op_type,
            node.overload,
            node.name or "",
            [value.name if value is not None else "" for value in node.inputs],
            [value.name for value in node.outputs],
            sorted(([name, _attribute(each)] for name, each in node.attributes.items()), key=lambda pair: pair[0]),
        ]


def _attribute(attribute: ir.Attr) -> list[Any]:
    if attribute.is_ref():
        return [attribute.type.name, "ref", attribute.ref_attr_name]
    value, kind = attribute.value, attribute.type.name
    many = list(value) if kind.endswith("S") and value is not None else [value]
    return [kind, [_value(kind.removesuffix("S"), each) for each in many]]


def _value(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind == "FLOAT":  # a file holds 32 bits of it
        return struct.pack("<f", value).hex()
    if kind == "GRAPH":
        return _graph(value)
    if kind == "TENSOR":
        return _tensor(value)
    if kind == "STRING":
        return value if isinstance(value, str) else bytes(value).hex()
    return value if isinstance(value, int) else str(value)


def _initializer(tensor: ir.TensorProtocol | None) -> list[Any] | None:
    if tensor is None:
        return None
    return _described(tensor) if _is_weight(tensor) else _tensor(tensor)


def _tensor(tensor: ir.TensorProtocol) -> list[Any]:
    """A tensor that is part of the graph, by the digest of its values."""
    if tensor.dtype == ir.DataType.STRING:
        values = repr([bytes(each) for each in tensor.numpy().reshape(-1)]).encode()
    else:
        values = tensor.tobytes()
    return [*_described(tensor), hashlib.sha256(values).hexdigest()]


def _described(tensor: ir.TensorProtocol) -> list[Any]:
    return [tensor.dtype.name, _shape(ir.Shape(tensor.shape.numpy()))]


class FileChanged(UserWarning):
    """A file that is loaded was changed after it was verified."""


def find_change(source: Source, contract: Contract, *, weights: bool = False) -> Finding | None:
    """AS420 where the contract or the graph of a file (with `weights`: or a weight) is not what was verified; None where it is.

    None also for a contract without a digest (anyshape 0.1.0 wrote none), and where a second file with weights is
    missing: other findings are about that.
    """
    if contract.digest is None:
        return None
    name = name_of(source)
    if not _is_own_contract(read_metadata_of(source)[KEY]):
        return _contract_changed(name)
    model = open_model(source)
    try:
        if digest_graph(model) != contract.digest.graph:
            return _changed(name, "graph is not the one that was")
        if weights and digest_weights(model) != contract.digest.weights:
            return _changed(name, "weights are not those that were")
    except (OSError, ValueError):
        return None
    return None


def _is_own_contract(text: str) -> bool:
    """Whether a contract is the one that was written with its digest; contracts of earlier versions have none of themselves."""
    plain = json.loads(text)
    own = plain["digest"].get(OWN_DIGEST)
    return own is None or own == digest_contract(plain)


def _contract_changed(name: str) -> Finding:
    return Finding(
        code="AS420",
        name="file-changed",
        severity=Severity.WARNING,
        what=f"the contract of {name!r} was changed after it was verified.",
        why="its digest is that of another contract: what it promises now was compared with no model.",
        fix=f"anyshape check {quoted(name)} --model model.py --sign      compares it again, and renews its contract",
    )


def _changed(name: str, part: str) -> Finding:
    return Finding(
        code="AS420",
        name="file-changed",
        severity=Severity.WARNING,
        what=f"{name!r} was changed after it was verified.",
        why=f"its {part} compared with the model; a tool that quantizes or simplifies does that.",
        fix=f"anyshape check {quoted(name)} --model model.py --sign      compares it again, and renews its contract",
    )
