"""What the user gets: the model, its contract, the verdict behind it, and what was found on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from anyshape.findings import Finding, Severity
from anyshape.records.captured import Guard
from anyshape.records.contract import Contract
from anyshape.records.verdict import Verdict

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir


@dataclass(frozen=True, kw_only=True)
class Export:
    """The result of `anyshape.export`.

    `model` is the ONNX model in memory (an onnx_ir.Model; `model_proto` for onnx's own type), `path` the file that was
    written, or None.
    """

    model: ir.Model = field(repr=False)
    contract: Contract
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    guards: tuple[Guard, ...] = field(default=(), repr=False)
    strategy: str = "symbolic"
    device: str = "cpu"
    seconds: float = 0.0
    path: Path | None = None

    @property
    def is_kept(self) -> bool:
        """Whether the promise is kept: no finding is an error."""
        return all(finding.severity is not Severity.ERROR for finding in self.findings)

    @property
    def model_proto(self) -> onnx.ModelProto:
        """The model as onnx's own protobuf type."""
        import onnx_ir as ir

        return ir.to_proto(self.model)
