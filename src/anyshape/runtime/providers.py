"""Execution providers of onnxruntime: the devices that run a file."""

from __future__ import annotations

from collections.abc import Sequence

from anyshape.findings import Finding, UsageError
from anyshape.findings.choices import nearest_choice
from anyshape.runtime.session import CPU, available_providers, started_providers


def check_providers(wanted: Sequence[str] | None) -> tuple[str, ...]:
    """The providers in this order, CPU alone for None.

    Raises UsageError for one that this onnxruntime does not have (AS422), and for one that does not start here (AS424):
    onnxruntime itself would run the file on the CPU, with a line in its log.
    """
    if wanted is None:
        return (CPU,)
    available = available_providers()
    for each in wanted:
        if each not in available:
            raise UsageError(_unknown(each, available))
    started = [CPU] if set(wanted) <= {CPU} else started_providers(wanted)
    for each in wanted:
        if each not in started:
            raise UsageError(not_started(each, started))
    return tuple(wanted)


def not_started(name: str, started: Sequence[str]) -> Finding:
    """AS424: the provider is part of this build of onnxruntime, and cannot run here."""
    return Finding(
        code="AS424",
        name="provider-not-started",
        what=f"onnxruntime has the execution provider {name!r}, but cannot start it here.",
        why=f"it would run the file with {', '.join(started)} instead: a device, a driver or a library is missing.",
        fix=f"providers={list(started)!r}",
        alternative="onnxruntime.set_default_logger_severity(0) before the call shows the reason in its log.",
    )


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
