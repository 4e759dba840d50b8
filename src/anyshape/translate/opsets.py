"""From the opset in which translations are written to the one that the user asked for.

Translations are written in opset 18. A file of another opset is converted at the end and verified like every other: to newer
opsets by onnxscript, to 11 to 17 by us. What cannot be converted is refused; the file has the opset that was given.
"""

from __future__ import annotations

from dataclasses import replace

from anyshape.findings import Finding, PromiseBroken
from anyshape.intercept.quiet import quiet_libraries
from anyshape.records.exported import Exported
from anyshape.translate.older_opsets import lower_further
from anyshape.translate.opset17 import OPSET as OPSET_17
from anyshape.translate.opset17 import Inexpressible, lower_to_17

WRITTEN_OPSET = 18


def convert_opset(exported: Exported, opset: int) -> Exported:
    """The same model at another opset. Raises PromiseBroken where that cannot be."""
    if opset == WRITTEN_OPSET:
        return exported
    if opset < WRITTEN_OPSET:
        try:
            lower_to_17(exported.model)
            if opset < OPSET_17:
                lower_further(exported.model, opset)
        except Inexpressible as error:
            raise PromiseBroken(_refused(opset, str(error))) from error
        return replace(exported, opset=opset)
    from onnxscript import version_converter

    with quiet_libraries():
        try:
            version_converter.convert_version(exported.model, opset)
        except Exception as error:
            raise PromiseBroken(_refused(opset, f"{type(error).__name__}: {error}")) from error
    reached = exported.model.opset_imports.get("", WRITTEN_OPSET)
    if reached != opset:
        raise PromiseBroken(_refused(opset, f"the converter stops at opset {reached}."))
    exported.model.ir_version = max(exported.model.ir_version, _oldest_ir_version(opset))
    return replace(exported, opset=opset)


def _oldest_ir_version(opset: int) -> int:
    from onnx import helper

    return int(helper.find_min_ir_version_for([helper.make_opsetid("", opset)]))


def _refused(opset: int, why: str) -> Finding:
    return Finding(
        code="AS203",
        name="opset-refused",
        what=f"the model cannot be written at opset {opset}.",
        why=why.splitlines()[0][:200],
        fix=f"leave the opset out: {WRITTEN_OPSET} is the one in which anyshape writes.",
    )
