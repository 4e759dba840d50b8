"""A file for one runtime: `target="onnxruntime"` has the fused operators of onnxruntime's own optimizer.

exported -> optimized by onnxruntime -> verified        kept if it is right
exported -> verified                                    otherwise, with a warning

The portable file takes the place of an optimized one that is wrong: what was asked of the file is to be right first, and
onnxruntime applies the same optimizer when it loads a portable file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from anyshape.diagnose.differences import diagnose_changed, diagnose_custom_nodes, diagnose_rejected
from anyshape.exporting.context import ExportContext
from anyshape.findings import Finding
from anyshape.graphs.needs import find_needs
from anyshape.optimize.fused_model import restore_model
from anyshape.records.export import Exported
from anyshape.records.verdict import Verdict
from anyshape.runtime.child_messages import RuntimeRejected
from anyshape.runtime.offline_optimizer import optimize_file
from anyshape.saving import save_to_run
from anyshape.saving.models import lay_out

ONNXRUNTIME = "onnxruntime"
_CONTRIBUTED = "com.microsoft"  # the domain of operators that no other runtime has


@dataclass(frozen=True)
class Targeted:
    """The file that is kept, its verdict, and a warning where it is not the one for the target."""

    exported: Exported
    verdict: Verdict
    findings: tuple[Finding, ...] = ()


def verify_for_target(exported: Exported, context: ExportContext, verify: Callable[[Exported], Verdict]) -> Targeted:
    """The file for the target of the export, verified. Parts of a larger file stay portable until they are put together."""
    if context.options.target != ONNXRUNTIME or context.is_part:
        return Targeted(exported, verify(exported))
    fused = fuse(exported)
    if isinstance(fused, Finding):
        verdict = verify(exported)
        return Targeted(exported, verdict, (fused,) if verdict.passed else ())
    verdict = verify(fused)
    if verdict.passed:
        return Targeted(fused, verdict)
    portable = verify(exported)
    return Targeted(exported, portable, (diagnose_changed(verdict),) if portable.passed else ())


def fuse(exported: Exported) -> Exported | Finding:
    """The model as onnxruntime's optimizer writes it, or the reason for which there is none. The given one stays as it is."""
    import onnx_ir as ir

    if needs := find_needs(exported.model):
        return diagnose_custom_nodes(needs)
    with tempfile.TemporaryDirectory(prefix="anyshape-") as folder:
        source, target = Path(folder) / "model.onnx", Path(folder) / "fused.onnx"
        save_to_run(exported.model, source)
        try:
            optimize_file(source, target)
            fused = ir.load(target)
            restore_model(fused, exported.model, dict(lay_out(exported.model, "").tensors))
        except RuntimeRejected as error:
            return diagnose_rejected(error.message)
        except (ValueError, KeyError) as error:
            return diagnose_rejected(str(error))
    is_portable = not any(domain.startswith(_CONTRIBUTED) for domain in fused.opset_imports)
    return replace(exported, model=fused, target="" if is_portable else ONNXRUNTIME)
