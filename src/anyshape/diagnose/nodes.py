"""The node at fault in words: `node /head/Reshape (Reshape) holds the constant shape [3, 5] (from model.py:41)`."""

from __future__ import annotations

from anyshape.findings import Source
from anyshape.records.verdict import Failure, FailureKind, Fault, Located

_TAKES_A_SHAPE = ("Reshape", "Expand", "ConstantOfShape")


def say_node(failure: Failure) -> str | None:
    """Which node it is and what is wrong with it; None where it was not found."""
    located = failure.located
    if located is None or not located.node:
        return None
    source = f" (from {located.source.file}:{located.source.line})" if located.source is not None else ""
    return f"node {located.node} ({located.op_type}) {_does(failure, located)}{source}"


def _does(failure: Failure, located: Located) -> str:
    if located.constant is not None:
        word = "shape" if located.op_type in _TAKES_A_SHAPE else "size"
        return f"holds the constant {word} {list(located.constant)}"
    if failure.kind is FailureKind.DIFFERS:
        return "is the first whose value differs"
    return "is where it goes wrong"


def say_fault(failure: Failure) -> str:
    """Whose fault it is, where that is known to be the runtime's, or the file breaks the standard."""
    located = failure.located
    if located is not None and located.fault is Fault.UNDEFINED:
        return f"; the fault is the file's: the ONNX standard does not define {located.op_type} for this type"
    if located is None or located.fault is not Fault.RUNTIME:
        return ""
    if not located.node:
        return "; the fault is onnxruntime's: with its optimizations off the file answers as PyTorch does"
    return "; the fault is onnxruntime's: onnx.reference answers as PyTorch does"


def source_of(failure: Failure) -> Source | None:
    """The user's line behind the node."""
    return failure.located.source if failure.located is not None else None
