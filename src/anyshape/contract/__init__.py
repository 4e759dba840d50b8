"""Stage: the contract of a file: written into its metadata, and enforced by the graph itself.

This file: contracts in ONNX files: written to the model's metadata, and read back without the graph or the weights.

For that, the outermost fields of a file are read one by one.

A model is a protobuf message, and protobuf does not say where a message ends: a file that was cut short is known by a
field that reaches beyond the end, or by the absence of what every model has.

Every way in which a file can be no ONNX model becomes a UsageError here, once.

Files, in the order in which data flows:

    build          facts of all stages -> Contract
    graph_rules    Contract -> rules on the axes of inputs; the contract of a file of another exporter, which promises nothing
    defend         those rules as nodes of the graph
    defend_values  bounds of values as nodes of the graph
    from_json      JSON -> Contract
    digest         whether a file is still the one that was verified
    file_messages  findings about files
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from anyshape.contract.file_messages import cut_short, missing_file, not_a_file, not_onnx, unreadable_file
from anyshape.contract.from_json import parse_contract
from anyshape.contract.graph_rules import contract_of_foreign
from anyshape.findings import Finding, UsageError
from anyshape.graphs import find_needs_of_proto
from anyshape.records.contract import Contract, format_contract

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

    from anyshape.inputs import Declared
    from anyshape.runtime.child_messages import Array

    Source = str | PathLike[str] | bytes | onnx.ModelProto | ir.Model

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# The fields of ModelProto that every model has, and the one that we are after.
_IR_VERSION, _GRAPH, _OPSET_IMPORT, _METADATA = 1, 7, 8, 14
_KINDS = {_IR_VERSION: _VARINT, 2: _BYTES, 3: _BYTES, _GRAPH: _BYTES, _OPSET_IMPORT: _BYTES, _METADATA: _BYTES}
KEY = "anyshape.contract"
REPAIRED_KEY = "anyshape.repaired"  # what was changed in a file, or in the source that it was exported from
SOURCE_KEY = "anyshape.source"


@dataclass(frozen=True)
class Matched:
    """The file's name of each leaf that the file takes, the file's outputs in order, and its custom nodes."""

    inputs: dict[str, str]
    outputs: tuple[str, ...]
    needs: tuple[str, ...] = ()

    def rename(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Feeds by the file's own names; what the file does not take is left out."""
        return {self.inputs[leaf]: array for leaf, array in feeds.items() if leaf in self.inputs}


def match_file(path: Path, declared: Declared) -> Matched:
    """Raises UsageError where the file's inputs are not those of the model."""

    model = read_model(path)
    graph, needs = model.graph, find_needs_of_proto(model)
    weights = {tensor.name for tensor in graph.initializer}
    names = [value.name for value in graph.input if value.name not in weights]
    leaves = declared.open_leaves
    outputs = tuple(value.name for value in graph.output)
    known = {leaf.name: leaf.name for leaf in leaves} | {leaf.path: leaf.name for leaf in leaves}
    if all(name in known for name in names):
        return Matched({known[name]: name for name in names}, outputs, needs)
    if len(names) == len(leaves):
        return Matched({leaf.name: name for leaf, name in zip(leaves, names, strict=True)}, outputs, needs)
    raise UsageError(_no_match(path, names, [leaf.name for leaf in leaves]))


def _no_match(path: Path, names: list[str], leaves: list[str]) -> Finding:
    return Finding(
        code="AS039",
        name="inputs-do-not-match",
        what=f"the inputs of {str(path)!r} are not those of the model.",
        why=f"the file takes {', '.join(names) or 'nothing'}; the model takes {', '.join(leaves) or 'nothing'}.",
        fix="give the model, and the inputs, from which the file was exported.",
    )


class NotOnnx(Exception):
    """The bytes are not an ONNX model."""


class CutShort(NotOnnx):
    """The bytes are the beginning of an ONNX model; `size` and `needed` count bytes, `needed` at least."""

    def __init__(self, size: int, needed: int) -> None:
        super().__init__(size, needed)
        self.size = size
        self.needed = needed


def read_metadata(stream: BinaryIO) -> dict[str, str]:
    """The metadata_props of the model in the stream. Raises NotOnnx, or CutShort."""
    metadata: dict[str, str] = {}
    seen: set[int] = set()
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    try:
        for number, payload in _fields(stream, size, wanted=_METADATA):
            seen.add(number)
            if payload is not None:
                key, value = _entry(payload)
                metadata[key] = value
    except _BeyondEndError as error:
        if _IR_VERSION in seen:
            raise CutShort(size, error.needed) from error
        raise NotOnnx from error
    if _IR_VERSION not in seen:
        raise NotOnnx
    if not {_GRAPH, _OPSET_IMPORT} <= seen:
        raise CutShort(size, size + 1)
    return metadata


class _BeyondEndError(Exception):
    def __init__(self, needed: int) -> None:
        super().__init__(needed)
        self.needed = needed


def _fields(stream: BinaryIO, size: int, wanted: int | None = None) -> Iterator[tuple[int, bytes | None]]:
    """Number and content of each field; None for the content of those that are not wanted, which is not read."""
    while stream.tell() < size:
        number, kind = divmod(_varint(stream), 8)
        if number == 0 or (wanted is not None and _KINDS.get(number, kind) != kind):
            raise NotOnnx
        if kind == _VARINT:
            _varint(stream)
            yield number, None
            continue
        length = _length(stream, kind)
        end = stream.tell() + length
        if end > size:
            raise _BeyondEndError(end)
        payload = stream.read(length) if wanted in (None, number) else None
        stream.seek(end)
        yield number, payload


def _length(stream: BinaryIO, kind: int) -> int:
    if kind == _BYTES:
        return _varint(stream)
    if kind in (_FIXED32, _FIXED64):
        return 4 if kind == _FIXED32 else 8
    raise NotOnnx


def _varint(stream: BinaryIO) -> int:
    """Seven bits a byte, the lowest first; the highest bit: more follow."""
    value = 0
    for shift in range(0, 70, 7):
        byte = stream.read(1)
        if not byte:
            raise _BeyondEndError(stream.tell() + 1)
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
    raise NotOnnx


def _entry(payload: bytes) -> tuple[str, str]:
    """Key and value of a StringStringEntryProto."""
    try:
        fields = dict(_fields(io.BytesIO(payload), len(payload)))
        return (fields.get(1) or b"").decode(), (fields.get(2) or b"").decode()
    except (_BeyondEndError, UnicodeDecodeError) as error:
        raise NotOnnx from error


def write_contract(model: ir.Model | onnx.ModelProto, contract: Contract) -> None:
    """Put the contract into the model's metadata, in place of the one that it may have."""
    text = format_contract(contract)
    if isinstance(model.metadata_props, dict):
        model.metadata_props[KEY] = text
        return
    others = [entry for entry in model.metadata_props if entry.key != KEY]
    del model.metadata_props[:]
    model.metadata_props.extend(others)
    model.metadata_props.add(key=KEY, value=text)


def strip_nodes(model: ir.Model) -> None:
    """Take the lines of the user's code from every node of a model, inner graphs and functions included."""
    import onnx_ir as ir

    graphs: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for graph in graphs:
        for node in ir.traversal.RecursiveGraphIterator(graph):
            node.metadata_props.pop(SOURCE_KEY, None)


def find_contract(source: Source) -> Contract | None:
    """The contract in a file, in a file's bytes or in a model; None if there is none.

    Raises UsageError on a file that is missing or is no ONNX model, and on a contract that cannot be read.
    """
    text = _metadata(source).get(KEY)
    return None if text is None else parse_contract(text)


def read_contract(path: str | PathLike[str]) -> tuple[Contract, bool]:
    """The file's own contract and True; or what its graph declares, which is no promise, and False."""
    contract = find_contract(path)
    return (contract, True) if contract is not None else (contract_of_foreign(read_model(path)), False)


def read_model(path: str | PathLike[str]) -> onnx.ModelProto:
    """The model in a file, without the weights that lie in other files. Raises UsageError as `find_contract` does."""
    import onnx

    _metadata(path)  # says more exactly what is wrong than protobuf does
    try:
        return onnx.load(fspath(path), load_external_data=False)
    except OSError as error:
        raise UsageError(unreadable_file(fspath(path), error)) from error
    except Exception as error:  # protobuf's DecodeError, whose module has no types
        raise UsageError(not_onnx(fspath(path))) from error


def _metadata(source: Source) -> dict[str, str]:
    if isinstance(source, bytes):
        return _read(io.BytesIO(source), "the model in memory")
    if isinstance(source, (str, PathLike)):
        return _metadata_of_file(fspath(source))
    if isinstance(source.metadata_props, dict):
        return dict(source.metadata_props)
    return {entry.key: entry.value for entry in source.metadata_props}


def _metadata_of_file(path: str) -> dict[str, str]:
    try:
        with Path(path).open("rb") as stream:
            return _read(stream, path)
    except FileNotFoundError as error:
        raise UsageError(missing_file(path)) from error
    except IsADirectoryError as error:
        raise UsageError(not_a_file(path)) from error
    except OSError as error:
        # Windows knows no IsADirectoryError for this: it forbids to open a folder.
        raise UsageError(not_a_file(path) if Path(path).is_dir() else unreadable_file(path, error)) from error


def _read(stream: io.BytesIO | io.BufferedReader, name: str) -> dict[str, str]:
    try:
        return read_metadata(stream)
    except CutShort as error:
        raise UsageError(cut_short(name, error.size, error.needed)) from error
    except NotOnnx as error:
        raise UsageError(not_onnx(name)) from error
