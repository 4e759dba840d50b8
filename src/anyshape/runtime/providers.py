"""Execution providers of onnxruntime: the devices that run a file."""

from __future__ import annotations

from collections.abc import Sequence

from anyshape.findings import Finding, UsageError
from anyshape.findings.choices import nearest_choice
from anyshape.runtime.session import CPU, available_providers


def check_providers(wanted: Sequence[str] | None) -> tuple[str, ...]:
    """The providers in this order, CPU alone for None. Raises UsageError for one that this onnxruntime does not have."""
    if wanted is None:
        return (CPU,)
    available = available_providers()
    for each in wanted:
        if each not in available:
            raise UsageError(_unknown(each, available))
    return tuple(wanted)


def _unknown(name: str, available: Sequence[str]) -> Finding:
    near = nearest_choice(name, available)
    return Finding(
        code="AS422",
        name="unknown-provider",
        what=f"onnxruntime has no execution provider {name!r} here.",
        why=f"it has {', '.join(available)}.",
        fix=f"providers=[{(near or CPU)!r}]",
        alternative="install the build of onnxruntime for that device, such as onnxruntime-gpu for CUDA.",
    )
