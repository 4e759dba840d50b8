"""Whether a file is still the one that was verified: its digest now, and the one in its contract."""

from __future__ import annotations

import io
from os import PathLike, fspath
from typing import TYPE_CHECKING

from anyshape.findings import Finding, Severity
from anyshape.findings.paths import quoted
from anyshape.records.contract import Contract

if TYPE_CHECKING:
    import onnx_ir as ir

    Source = str | PathLike[str] | bytes

_IN_MEMORY = "the model in memory"


class FileChanged(UserWarning):
    """A file that is loaded was changed after it was verified."""


def find_change(source: Source, contract: Contract, *, weights: bool = False) -> Finding | None:
    """AS420 where the graph of a file (with `weights`: or a weight) is not what was verified; None where it is.

    None also for a contract without a digest (anyshape 0.1.0 wrote none), and where a second file with weights is
    missing: other findings are about that.
    """
    if contract.digest is None:
        return None
    from anyshape.contract.digest import digest_graph, digest_weights

    name = _IN_MEMORY if isinstance(source, bytes) else fspath(source)
    model = open_model(source)
    try:
        if digest_graph(model) != contract.digest.graph:
            return _changed(name, "graph is not the one that was")
        if weights and digest_weights(model) != contract.digest.weights:
            return _changed(name, "weights are not those that were")
    except (OSError, ValueError):
        return None
    return None


def open_model(source: Source) -> ir.Model:
    """The model in a file or its bytes; weights in a second file are read when they are asked for."""
    import onnx
    import onnx_ir as ir

    if isinstance(source, bytes):
        return ir.from_proto(onnx.load_model(io.BytesIO(source), load_external_data=False))
    return ir.load(fspath(source))


def _changed(name: str, part: str) -> Finding:
    return Finding(
        code="AS420",
        name="file-changed",
        severity=Severity.WARNING,
        what=f"{name!r} was changed after it was verified.",
        why=f"its {part} compared with the model; a tool that quantizes or simplifies does that.",
        fix=f"anyshape check {quoted(name)} --model model.py --sign      compares it again, and renews its contract",
    )
