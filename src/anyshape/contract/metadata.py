"""Contracts in ONNX files: written to the model's metadata, and read back without the graph or the weights.

Every way in which a file can be no ONNX model becomes a UsageError here, once.
"""

from __future__ import annotations

import io
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from anyshape.contract.envelope import CutShort, NotOnnx, read_metadata
from anyshape.contract.file_messages import cut_short, missing_file, not_a_file, not_onnx, unreadable_file
from anyshape.contract.foreign import contract_of_foreign
from anyshape.contract.parse import parse_contract
from anyshape.contract.text import format_contract
from anyshape.findings import UsageError
from anyshape.records.contract import Contract

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

    Source = str | PathLike[str] | bytes | onnx.ModelProto | ir.Model

KEY = "anyshape.contract"
SOURCE_KEY = "anyshape.source"


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
