"""What torch.onnx.export or its ONNXProgram would do and we do not, as findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anyshape.findings import Finding

WEIGHTS_ARE_VERIFIED = "the weights are part of what is verified."
AXES_ARE_DECLARED = "the names of axes are those of the declaration, in the file and in its contract."


def not_honoured(name: str, value: Any, why: str, function: str = "anyshape.compat.export") -> Finding:
    """An argument of a function that would change the file in a way that we do not offer."""
    return Finding(
        code="AS037",
        name="argument-not-honoured",
        what=f"{function} cannot honour {name}={value!r}.",
        why=why,
        fix=f"leave {name} out.",
    )


def weights_missing(names: Sequence[str]) -> Finding:
    """Names of a state dict that the file does not have."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return _not_applied(
        f"the file has no weight {names[0]!r}{more}.",
        "the module does not use it, or it was computed into another constant when the file was made.",
    )


def weight_differs(name: str, before: str, after: str) -> Finding:
    """A weight of another shape or dtype."""
    return _not_applied(
        f"the weight {name!r} is {before} in the file and {after} in the state dict.",
        "a file takes other values, not other shapes or dtypes.",
    )


def _not_applied(what: str, why: str) -> Finding:
    return Finding(
        code="AS038",
        name="weights-not-applied",
        what=what,
        why=why,
        fix="load the weights into the module and export it again.",
    )
