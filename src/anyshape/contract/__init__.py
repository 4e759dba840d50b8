"""Stage: the contract of a file: written into its metadata, and enforced by the graph itself.

This file: contracts in ONNX files: written to the model's metadata, and read back without the graph or the weights.

Files, in the order in which data flows:

    build          facts of all stages -> Contract
    graph_rules    Contract -> rules on the axes of inputs; the contract of a file of another exporter, which promises nothing
    defend         those rules as nodes of the graph
    defend_values  bounds of values as nodes of the graph
    from_json      JSON -> Contract
    consistency    whether the parts of a contract fit together
    outer_fields   the outermost fields of a file: its metadata
    safe_tensors   checks of the tensors of a model of unknown origin, and of the files that they lie in
    safe_file      checks of its functions and graphs
    read_file      a file, or its bytes -> metadata, message, graph; what is no ONNX model becomes a finding
    digest         whether a file is still the one that was verified
    file_messages  findings about files
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyshape.contract.consistency import check_consistent
from anyshape.contract.file_messages import contract_of_another
from anyshape.contract.from_json import parse_contract
from anyshape.contract.graph_rules import contract_of_foreign
from anyshape.contract.read_file import open_model, read_metadata_of, read_model
from anyshape.findings import Finding, UsageError
from anyshape.graphs import find_needs_of_proto
from anyshape.records.contract import KEY, Contract, format_contract

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

    from anyshape.inputs import Declared
    from anyshape.runtime.child_messages import Array

    Source = str | PathLike[str] | bytes | onnx.ModelProto | ir.Model

__all__ = [
    "KEY",
    "REPAIRED_KEY",
    "SOURCE_KEY",
    "Matched",
    "check_names",
    "find_contract",
    "match_file",
    "open_model",
    "read_contract",
    "read_model",
    "strip_nodes",
    "write_contract",
]
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

    model = read_model(path, needs_weights=True)
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
    if text is None:
        return None
    contract = parse_contract(text)
    check_consistent(contract)
    return contract


def read_contract(path: str | PathLike[str]) -> tuple[Contract, bool]:
    """The file's own contract and True; or what its graph declares, which is no promise, and False."""
    contract = find_contract(path)
    return (contract, True) if contract is not None else (contract_of_foreign(open_model(path)), False)


def check_names(contract: Contract, model: onnx.ModelProto | ir.Model, name: str) -> None:
    """Raise UsageError (AS046) where a contract is about other inputs than the graph has, or about outputs that it lacks."""
    inputs, outputs = _ends(model)
    for kind, names, promised in (("inputs", inputs, contract.inputs), ("outputs", outputs, contract.outputs)):
        wanted = [tensor.name for tensor in promised]
        if not set(wanted) <= set(names) or (kind == "inputs" and len(wanted) < len(names)):
            raise UsageError(contract_of_another(name, kind, names, wanted))


def _ends(model: onnx.ModelProto | ir.Model) -> tuple[list[str], list[str]]:
    """The names of inputs that are no weights, and of outputs."""
    graph: Any = model.graph
    is_proto = hasattr(graph, "initializer")
    inputs, outputs = (graph.input, graph.output) if is_proto else (graph.inputs, graph.outputs)
    weights = {tensor.name for tensor in graph.initializer} if is_proto else set(graph.initializers)
    return [value.name for value in inputs if value.name not in weights], [value.name for value in outputs]


def _metadata(source: Source) -> dict[str, str]:
    props: Any = getattr(source, "metadata_props", None)
    if props is None or isinstance(source, (str, bytes, PathLike)):
        return read_metadata_of(source)  # type: ignore[arg-type]
    return dict(props) if isinstance(props, dict) else {entry.key: entry.value for entry in props}
